#include <stdio.h>
#include <string.h>
#include "greeting.h"

int greeting(const char *file, char *to, int size) {
	FILE *f = fopen(file, "r");
	if (!f || !fgets(to, size, f))
		return -1;
	fclose(f);
	return strlen(to);
}
