# emu/io: files are appended to the lists of Makefile.am here.
