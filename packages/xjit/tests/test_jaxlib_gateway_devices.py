"""The gateway to jaxlib: programs on several devices."""

import textwrap

import pytest

from packages.xjit.tests.new_process import run_in_new_process

pytestmark = pytest.mark.of_the_cpu

EIGHT = """
    import numpy as np
    import xjit.jaxlib_gateway as g
    devices = g.local_devices("cpu")
    assert len(devices) == 8
    groups = "dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>"
    hosts = [np.arange(2, dtype=np.float32) + 10 * i for i in range(8)]
    spread = [g.put(host, device) for host, device in zip(hosts, devices)]

    def run(body, result, **settings):
        text = ("module @m attributes {mhlo.num_replicas = 8 : i32} {\\n"
                f"func.func public @main(%x: tensor<2xf32>) -> {result} {{\\n{body}\\n"
                f"return %y : {result}\\n}}\\n}}")
        program = g.compile_program(text, devices, num_replicas=8)
        (outputs,) = program.execute_replicated([spread])
        assert [g.device_of(output) for output in outputs] == devices
        return np.stack([g.to_numpy(output) for output in outputs])
"""

COLLECTIVES = {
    "all_reduce": """
        y = run(f'''%y = "stablehlo.all_reduce"(%x) <{{replica_groups = {groups}}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }}) : (tensor<2xf32>) -> tensor<2xf32>''', "tensor<2xf32>")
        np.testing.assert_array_equal(y, [sum(hosts)] * 8)
    """,
    "all_gather": """
        y = run(f'''%r = stablehlo.reshape %x : (tensor<2xf32>) -> tensor<1x2xf32>
        %y = "stablehlo.all_gather"(%r) <{{all_gather_dim = 0 : i64, replica_groups = {groups}}}>
          : (tensor<1x2xf32>) -> tensor<8x2xf32>''', "tensor<8x2xf32>")
        np.testing.assert_array_equal(y, [hosts] * 8)
    """,
    "collective_permute": """
        pairs = [[i, (i + 1) % 8] for i in range(8)]
        y = run(f'''%y = "stablehlo.collective_permute"(%x) <{{
          source_target_pairs = dense<{pairs}> : tensor<8x2xi64>}}>
          : (tensor<2xf32>) -> tensor<2xf32>''', "tensor<2xf32>")
        np.testing.assert_array_equal(y, hosts[-1:] + hosts[:-1])
    """,
    "all_to_all": """
        eight = [np.arange(8, dtype=np.float32) + 10 * i for i in range(8)]
        spread = [g.put(host, device) for host, device in zip(eight, devices)]
        text = f'''func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
          %y = "stablehlo.all_to_all"(%x) <{{split_dimension = 0 : i64, concat_dimension = 0 : i64,
            split_count = 8 : i64, replica_groups = {groups}}}>
            : (tensor<8xf32>) -> tensor<8xf32>
          return %y : tensor<8xf32> }}'''
        (outputs,) = g.compile_program(text, devices, num_replicas=8).execute_replicated([spread])
        np.testing.assert_array_equal([g.to_numpy(y) for y in outputs], np.stack(eight).T)
    """,
    "reduce_scatter": """
        eight = [np.arange(8, dtype=np.float32) + 10 * i for i in range(8)]
        spread = [g.put(host, device) for host, device in zip(eight, devices)]
        text = f'''func.func public @main(%x: tensor<8xf32>) -> tensor<1xf32> {{
          %y = "stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 0 : i64,
            replica_groups = {groups}}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>):
              %s = stablehlo.add %a, %b : tensor<f32>
              stablehlo.return %s : tensor<f32>
          }}) : (tensor<8xf32>) -> tensor<1xf32>
          return %y : tensor<1xf32> }}'''
        (outputs,) = g.compile_program(text, devices, num_replicas=8).execute_replicated([spread])
        np.testing.assert_array_equal([g.to_numpy(y)[0] for y in outputs], sum(eight))
    """,
    "replica_id": """
        y = run('%y = stablehlo.replica_id : tensor<ui32>', "tensor<ui32>")
        np.testing.assert_array_equal(y, range(8))
    """,
    "partition_id and collectives between partitions": """
        text = '''module @m attributes {mhlo.num_partitions = 8 : i32} {
          sdy.mesh @mesh = <["x"=8]>
          func.func public @main(%x: tensor<16xf32>) -> (tensor<8xui32>, tensor<16xf32>) {
            %r:2 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>]
              out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"}
              (%a: tensor<2xf32>) {
                %i = stablehlo.partition_id : tensor<ui32>
                %j = stablehlo.reshape %i : (tensor<ui32>) -> tensor<1xui32>
                %p = "stablehlo.collective_permute"(%a) <{
                  source_target_pairs = dense<PAIRS> : tensor<8x2xi64>,
                  channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}>
                  : (tensor<2xf32>) -> tensor<2xf32>
                sdy.return %j, %p : tensor<1xui32>, tensor<2xf32>
              } : (tensor<16xf32>) -> (tensor<8xui32>, tensor<16xf32>)
            return %r#0, %r#1 : tensor<8xui32>, tensor<16xf32> } }'''
        text = text.replace("PAIRS", str([[i, (i + 1) % 8] for i in range(8)]))
        program = g.compile_program(
            text, devices, num_partitions=8, use_spmd=True, use_shardy=True)
        ids, moved = program.execute_replicated([spread])
        np.testing.assert_array_equal([g.to_numpy(y)[0] for y in ids], range(8))
        np.testing.assert_array_equal([g.to_numpy(y) for y in moved], hosts[-1:] + hosts[:-1])
    """,
    "a subset in another order": """
        devices = devices[5:2:-1]
        text = '''func.func public @main(%x: tensor<2xf32>) -> (tensor<ui32>, tensor<2xf32>) {
          %y = stablehlo.replica_id : tensor<ui32>
          return %y, %x : tensor<ui32>, tensor<2xf32> }'''
        program = g.compile_program(text, devices, num_replicas=3)
        ids, xs = program.execute_replicated([[g.put(hosts[d.id], d) for d in devices]])
        np.testing.assert_array_equal([g.to_numpy(y) for y in ids], range(3))
        np.testing.assert_array_equal([g.to_numpy(x) for x in xs], [hosts[d.id] for d in devices])
    """,
    "outputs chained without taking them apart": """
        text = '''func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %y = stablehlo.add %x, %x : tensor<2xf32> return %y : tensor<2xf32> }'''
        program = g.compile_program(text, devices, num_replicas=8)
        (once,) = program.execute([g.assemble(spread)])
        (twice,) = program.execute([once])
        assert g.devices_of(twice) == tuple(devices)
        try:
            g.to_numpy(twice)
        except ValueError as error:
            assert "sharded over 8 devices" in str(error)
        else:
            raise AssertionError("to_numpy took a spread buffer")
        pieces = [g.to_numpy(piece) for piece in g.shards(twice)]
        np.testing.assert_array_equal(pieces, np.stack(hosts) * 4)
        restored = g.deserialize_program(program.serialize(), devices, num_replicas=8)
        (again,) = restored.execute_replicated([spread])
        np.testing.assert_array_equal([g.to_numpy(y) for y in again], np.stack(hosts) * 2)
    """,
    "donation": """
        text = '''func.func public @main(%x: tensor<2xf32> {tf.aliasing_output = 0 : i32})
          -> tensor<2xf32> {
          %y = stablehlo.add %x, %x : tensor<2xf32> return %y : tensor<2xf32> }'''
        program = g.compile_program(text, devices, num_replicas=8)
        mine = [g.put(host, device) for host, device in zip(hosts, devices)]
        whole = g.assemble(mine)
        (output,) = program.execute([whole])
        assert g.is_deleted(whole) and all(g.is_deleted(piece) for piece in mine)
        pieces = [g.to_numpy(piece) for piece in g.shards(output)]
        np.testing.assert_array_equal(pieces, np.stack(hosts) * 2)
    """,
    "shardy": """
        text = '''module @m attributes {mhlo.num_partitions = 8 : i32} {
          sdy.mesh @mesh = <["x"=8]>
          func.func public @main(
              %x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
              -> (tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) {
            %zero = stablehlo.constant dense<0.0> : tensor<f32>
            %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
              : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
            return %y : tensor<f32> } }'''
        program = g.compile_program(
            text, devices, num_partitions=8, use_spmd=True, use_shardy=True)
        (outputs,) = program.execute_replicated([spread])
        np.testing.assert_array_equal([g.to_numpy(y) for y in outputs], [np.sum(hosts)] * 8)
    """,
    "copying from device to device": """
        there = g.copy_to_device(spread[1], devices[6])
        assert g.device_of(there) == devices[6]
        np.testing.assert_array_equal(g.to_numpy(there), hosts[1])
        text = '''func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
          %y = stablehlo.add %x, %x : tensor<2xf32> return %y : tensor<2xf32> }'''
        (y,) = g.compile_program(text, [devices[6]]).execute([there])
        assert g.device_of(y) == devices[6]
        try:
            g.assemble([g.put(np.zeros(2), devices[0]), g.put(np.zeros(3), devices[1])])
        except ValueError as error:
            assert "piece 0: float64[2], piece 1: float64[3]" in str(error)
        else:
            raise AssertionError("unequal pieces were taken")
    """,
}


def test_programs_run_on_eight_devices_with_collectives():
    blocks = [textwrap.dedent(EIGHT)]
    for name, body in COLLECTIVES.items():
        indented = textwrap.indent(textwrap.dedent(body), "    ")
        blocks.append(
            "def check(devices=devices, spread=spread):\n"
            + indented
            + f"\ncheck()\nprint({name!r})"
        )
    printed = run_in_new_process("\n".join(blocks), XSTACK_NUM_CPU_DEVICES="8")
    assert printed.splitlines() == list(COLLECTIVES)
