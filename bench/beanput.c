/* SPDX-License-Identifier: MIT */
/* beanput.c - beanput PORT BODY: puts one job into the beanstalkd of the loopback. A static program, so that its start
 * costs as little as can be. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	static char request[4096];
	struct sockaddr_in address = { .sin_family = AF_INET };
	char answer[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 3)
		return 2;
	address.sin_port = htons((unsigned short)atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int len = snprintf(request, sizeof(request), "put 0 0 60 %zu\r\n%s\r\n", strlen(argv[2]), argv[2]);

	if (len >= (int)sizeof(request) || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    write(fd, request, (size_t)len) != len || read(fd, answer, sizeof(answer)) < 8)
		return 1;
	return strncmp(answer, "INSERTED", 8) != 0;
}
