#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "greeting.h"

/* Answers each request with the greeting in a file. */
int main(int argc, char **argv) {
	char text[256], answer[512], request[4096];
	int on = 1, n = greeting(argv[2], text, sizeof text);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (n < 0 || bind(s, (struct sockaddr *)&at, sizeof at) || listen(s, 16))
		return 1;
	n = snprintf(answer, sizeof answer, "HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s", n, text);
	for (;;) {
		int c = accept(s, 0, 0);
		if (read(c, request, sizeof request) > 0)
			write(c, answer, n);
		close(c);
	}
}
