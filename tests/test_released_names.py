"""What a release made public is there in every later version that its users' ranges admit."""

import ast
import json
import pkgutil
import re
import subprocess

import pytest

pytest.importorskip("packaging")

from tools import releases

TAKEN_AWAY = {
    ("xjit.asked_shardings", "AskedShardings"): "is `RequestedTrees`; only `jit` uses it",
    ("xjit.jaxlib_gateway", "configure_cpu_client"): "`client` configures what it makes",
    ("xjit.jaxlib_gateway", "estimated_cost"): "is `estimate_cost`; only `xjit` uses it",
    ("xjit.jaxlib_gateway", "stacked"): "is `sharding_of_stack`; only `xjit` uses it",
    ("xjit.jaxlib_gateway", "uncommitted"): "is `sharding_of_uncommitted`; only `xjit` uses it",
    ("xjit.jaxlib_gateway", "join_processes"): "there is one way to join: `xpar.distributed`",
    ("xjit.jaxlib_gateway", "leave_processes"): "as `join_processes`",
    ("xjit.jaxlib_gateway", "pooled_shards"): "is `make_pooled_shards`; only `xjit` uses it",
    ("xjit.jaxlib_gateway", "spread_over"): "is `make_sharding_object`; only `xjit` uses it",
    ("xjit.places_of_calls", "mesh_within"): "`xjit.sharding.shardings` has it",
    ("xnp.numpy.creation", "fromfunction"): "users have it as `xnp.fromfunction`, as before",
    **{("xnp.numpy.creation", f"from{what}"): f"users have it as `xnp.from{what}`, as before"
       for what in ("buffer", "file", "iter", "string")},
    **{("xtree.compiling", name): "kernels are made by `xtree.generated_code`"
       for name in ("compile_build", "USES_BEFORE_COMPILING", "is_compilable", "can_match",
                    "compile_match")},
    ("xnp.lax.shape_queries", "reduce_window_shape_tuple"): "users have it as `xnp.lax`'s",
    ("xnp.numpy.rearranging", "fill_diagonal"): "users have it as `xnp.fill_diagonal`, as before",
    **{(f"xnp.lax.{module}", f"{name}_p"): f"users have it as `xnp.lax.{name}_p`, as before"
       for module, names in {
           "elementwise_arithmetic":
               "abs add cbrt ceil div floor integer_pow is_finite max min mul neg nextafter "
               "one_minus_square polynomial pow rem round rsqrt sign sqrt square sub",
           "elementwise_conversion":
               "bitcast_convert_type complex conj convert_element_type copy imag "
               "optimization_barrier real reduce_precision stop_gradient",
           "elementwise_functions":
               "acos acosh asin asinh atan2 atan atanh cos cosh exp2 exp expm1 log1p log2 log "
               "logistic sin sinh tan tanh",
           "elementwise_logic":
               "and clamp clz eq eq_to ge gt le le_to lt lt_to mulhi ne not or population_count "
               "select_n shift_left shift_right_arithmetic shift_right_logical xor",
           "special":
               "digamma igamma_grad_a igamma igammac lgamma polygamma "
               "regularized_incomplete_beta zeta",
       }.items() for name in names.split()},
}  # fmt: skip
"""Names of modules below those that users import from, which no released sibling takes."""


@pytest.fixture(scope="module")
def workspace():
    try:
        return releases.read_workspace()
    except releases.ReleasesError as error:
        pytest.skip(f"this clone lacks the commits of the releases: {error}")


def newest(workspace):
    return [r for p in workspace.packages if (r := workspace.newest(p))]


def sources(workspace, release):
    """Return the modules of a release with their texts, without those that an underscore hides."""
    folder = f"packages/{release.package}/src/"
    listed = releases.git(workspace.root, "ls-tree", "-r", release.commit, folder)
    blob_by_module = {}
    for line in listed.splitlines():
        (_, _, blob), path = line.split("\t")[0].split(), line.split("\t")[1]
        module = path.removeprefix(folder).removesuffix(".py").removesuffix("/__init__")
        if path.endswith(".py") and not re.search(r"(^|/)_", module):
            blob_by_module[module.replace("/", ".")] = blob
    return dict(zip(blob_by_module, texts_of(workspace.root, blob_by_module.values()), strict=True))


def texts_of(root, blobs):
    """Return the texts of blobs: by one process, where one for each would take seconds."""
    printed = subprocess.run(
        ["git", "-C", str(root), "cat-file", "--batch"],
        input="".join(f"{blob}\n" for blob in blobs).encode(), capture_output=True, check=True,
    ).stdout  # fmt: skip
    texts, place = [], 0
    while place < len(printed):
        start = printed.index(b"\n", place) + 1
        size = int(printed[place:start].split()[2])
        texts.append(printed[start : start + size].decode())
        place = start + size + 1
    return texts


def names_of(text):
    """Return the names that a module lists, none where the list is computed."""
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            try:
                return ast.literal_eval(node.value)
            except ValueError:
                return ()
    return ()


def is_there(module, name):
    try:
        getattr(pkgutil.resolve_name(module), name)
    except (ImportError, AttributeError):
        return False
    return True


def test_names_of_modules_that_were_released_are_there(workspace):
    """Over all modules of all packages; a computed list is that of the next test."""
    of_releases = {r.package: sources(workspace, r) for r in newest(workspace)}
    listed = [(package, module, name) for package, modules in of_releases.items()
              for module, text in modules.items() for name in names_of(text)]  # fmt: skip
    assert len(listed) > 1500 or not of_releases
    gone = {(m, n): package for package, m, n in listed if not is_there(m, n)}
    assert set(gone) == TAKEN_AWAY.keys()
    for (module, name), package in gone.items():
        for other, modules in of_releases.items():
            for user, text in modules.items() if other != package else ():
                uses = re.search(rf"\b{name}\b", text) and module.rpartition(".")[2] in text
                assert not uses, f"{user} of the release takes {module}.{name}"


def test_names_of_namespaces_that_were_released_are_there(workspace):
    commits = {r.commit for r in newest(workspace)}
    for commit in commits:
        text = releases.git(workspace.root, "show", f"{commit}:tests/public_names.json")
        gone = [f"{module}.{name}" for module, names in json.loads(text).items() for name in names
                if not is_there(module, name)]  # fmt: skip
        assert not gone
