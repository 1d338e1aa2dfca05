# What the tests are made of; folders below append to the same lists.
include tests/unit/local.mk
include tests/scenario/local.mk
include tests/fuzz/local.mk
include tests/plugin/local.mk
include tests/bench/local.mk
include tests/cli/local.mk
include tests/kernel/local.mk
