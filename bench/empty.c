/* SPDX-License-Identifier: MIT */
/* empty.c - what starting a program costs. Linked statically with musl, like the command. */
int
main(void)
{
	return 0;
}
