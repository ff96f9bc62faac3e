"""What the build of the site leaves in `docs/` is not a page that people wrote."""

from tools.site_pages import GENERATED, ROOT, written_files


def test_pages_that_the_build_writes_are_left_out(tmp_path):
    for name in (*GENERATED, "docs/howto", "docs/gallery_of_art"):
        (tmp_path / name / "more").mkdir(parents=True)
        (tmp_path / name / "more" / "page.md").touch()
    found = written_files(["docs/**/*.md", "docs/howto/**/*.md"], tmp_path)
    assert [path.relative_to(tmp_path).parts[1] for path in found] == ["gallery_of_art", "howto"]


def test_git_ignores_what_the_build_writes():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert all(f"{folder}/" in ignored for folder in GENERATED)
