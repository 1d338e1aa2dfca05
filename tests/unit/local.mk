unit_SOURCES += tests/unit/test_clock.c
unit_suites  += suite_clock
unit_SOURCES += tests/unit/test_ideal.c
unit_suites  += suite_ideal
unit_SOURCES += tests/unit/test_capture.c
unit_suites  += suite_capture
