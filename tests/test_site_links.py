"""The tool that checks the links of the built site finds those that lead nowhere."""

from tools.site_links import broken_links, main


def test_links_to_pages_anchors_and_files_that_are_not_there_are_found(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="folder/page.html#here">x</a><a href="#top">x</a><h1 id="top"></h1>'
        '<a href="https://example.org/none">x</a><img src="picture.png">'
    )
    (tmp_path / "folder" / "page.html").write_text(
        '<p id="here"></p><a href="../index.html#gone">x</a><a href="../index.html">x</a>'
    )
    assert list(broken_links(tmp_path)) == [
        "folder/page.html: ../index.html#gone",
        "index.html: picture.png",
    ]
    assert main([str(tmp_path)]) == 1
    assert "2 broken links" in capsys.readouterr().out


def test_a_site_whose_links_all_lead_somewhere_passes(tmp_path):
    (tmp_path / "a.html").write_text('<a href="a.html#%C3%BC">x</a><p id="ü"></p>')
    assert main([str(tmp_path)]) == 0
