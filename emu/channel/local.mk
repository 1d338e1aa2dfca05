libgwplug_la_SOURCES += emu/channel/ch_bernoulli.c
builtin_plugins += gw_channel_bernoulli
libgwplug_la_SOURCES += emu/channel/ch_gilbert.c emu/channel/ch_correlated.c emu/channel/ch_ber.c
libgwplug_la_SOURCES += emu/channel/ch_outage.c emu/channel/ch_jitter.c emu/channel/ch_trace.c
builtin_plugins += gw_channel_gilbert gw_channel_correlated gw_channel_ber
builtin_plugins += gw_channel_outage gw_channel_jitter gw_channel_trace
libgwplug_la_SOURCES += emu/channel/ch_script.c
builtin_plugins += gw_channel_script
