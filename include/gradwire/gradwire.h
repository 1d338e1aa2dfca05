/* gradwire.h - everything that a plugin may see */
#ifndef GRADWIRE_GRADWIRE_H
#define GRADWIRE_GRADWIRE_H

#include <gradwire/plugin.h>

#endif
