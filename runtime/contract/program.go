package contract

// ProgramDir is where cupola's programs are in every container, mounted
// read-only, as the lifecycle's programs are in Diego.
const ProgramDir = "/tmp/lifecycle"

// The programs in ProgramDir. Helper does most of the work: it does what the
// name that it is called by says, or else its first argument.
const (
	Helper   = ProgramDir + "/lifecycle"
	Builder  = ProgramDir + "/builder" // a link to Helper
	Launcher = ProgramDir + "/launcher"
	Fetch    = ProgramDir + "/fetch" // downloads a buildpack by URL
	Init     = ProgramDir + "/init"  // the first process of every container
)

// Commands that the daemon runs as the first argument of Helper.
const (
	CommandSSHD        = "sshd"        // serves one SSH connection on its standard streams
	CommandDirectories = "directories" // USER DIR…: makes directories that belong to a user
)

// Links are the names that Cloud Foundry's lifecycle has in ProgramDir beside
// the programs, and which of these serves each.
func Links() map[string]string {
	return map[string]string{
		"builder":     "lifecycle",
		"healthcheck": "lifecycle",
		"shell":       "lifecycle",
		"sh":          "lifecycle",
		"scp":         "lifecycle",
	}
}

// Tools lists the commands that Helper is when it is called by their names,
// sorted: a stack without a userland links them to it in /bin. sh is one of them
// and bash is not, because scripts that ask for bash need the real one.
func Tools() []string {
	return []string{
		"base64", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "echo", "env", "false", "find", "grep",
		"gunzip", "gzip", "head", "hostname", "id", "ln", "ls", "md5sum", "mkdir", "mktemp", "mv", "printenv", "readlink",
		"rm", "rmdir", "sed", "seq", "sh", "sha1sum", "sha256sum", "sha512sum", "shasum", "sleep", "sort", "tail", "tar",
		"tee", "touch", "tr", "true", "uname", "uniq", "wc", "which", "whoami", "xargs", "zcat",
	}
}
