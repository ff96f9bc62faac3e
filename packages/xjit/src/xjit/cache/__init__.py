"""The compilation cache: what is in it, whether it works, and how to clean it.

    functions     traces and executables of each function, in memory
    memory        bounded tables, and locks by key
    disk          executables for the next process: content-addressed, checksummed, private
    clearing      clear all of it
    inspection    statistics, doctor, explanations of keys: the functions shown here

`python -m xjit.cache stats | doctor | gc | clear | explain KEY1 KEY2` are its commands.
"""

from xtree.namespaces import namespace

with namespace(globals()):
    from xjit.cache.inspection import (
        clear as clear, collect as collect, directory as directory, doctor as doctor,
        entries as entries, explain as explain, reset_cache as reset_cache,
        set_cache_dir as set_cache_dir, stats as stats,
    )  # fmt: skip
