int greeting(const char *file, char *to, int size);
