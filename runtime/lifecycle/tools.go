package lifecycle

import "slices"

// Tools lists the commands that the lifecycle program is when it is called by
// their names, sorted: what a stack without a userland links to it in /bin.
// sh is among them and bash is not, on purpose: the shell is not one.
func Tools() []string {
	return slices.Clone([]string{
		"base64", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "env", "false", "find", "grep", "gunzip",
		"gzcat", "gzip", "head", "hostname", "id", "ln", "ls", "mkdir", "mktemp", "mv", "printenv", "readlink", "rm",
		"seq", "sh", "shasum", "sleep", "sort", "tail", "tar", "tee", "touch", "tr", "true", "uname", "uniq", "wc",
		"which", "whoami", "xargs", "zcat",
	})
}
