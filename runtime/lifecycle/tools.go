package lifecycle

// Tools lists the commands that the lifecycle program is when it is called by
// their names, sorted: what a stack without a userland links to it in /bin.
// sh is among them and bash is not, on purpose: the shell is not one.
func Tools() []string {
	return []string{
		"base64", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "echo", "env", "false", "find", "grep",
		"gunzip", "gzip", "head", "hostname", "id", "ln", "ls", "md5sum", "mkdir", "mktemp", "mv", "printenv", "readlink",
		"rm", "rmdir", "sed", "seq", "sh", "sha1sum", "sha256sum", "sha512sum", "shasum", "sleep", "sort", "tail", "tar",
		"tee", "touch", "tr", "true", "uname", "uniq", "wc", "which", "whoami", "xargs", "zcat",
	}
}
