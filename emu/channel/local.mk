libgwplug_la_SOURCES += emu/channel/ch_bernoulli.c
builtin_plugins += gw_channel_bernoulli
