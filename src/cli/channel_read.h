/* SPDX-License-Identifier: MIT */
#ifndef CLI_CHANNEL_READ_H
#define CLI_CHANNEL_READ_H

#include "cli/cli.h"

int channel_read(struct cli *cli); /* "channel read NAME": argv[0] is the name */

#endif
