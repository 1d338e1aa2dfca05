# emu/tc: files are appended to the lists of Makefile.am here.
