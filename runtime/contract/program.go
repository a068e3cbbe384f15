package contract

// ProgramDir is where cupola's programs are in every container, mounted
// read-only. Clients of Diego's API put no files there.
const ProgramDir = "/.cupola"

// LifecycleDir is where Cloud Foundry's apps find the programs of their
// lifecycle. The containers of apps, tasks and stagings show the programs of
// ProgramDir there, too; in others it belongs to the client, which brings its
// own lifecycle as in Diego.
const LifecycleDir = "/tmp/lifecycle"

// The programs. Helper does most of the work: it does what the name that it is
// called by says, or else its first argument.
const (
	Helper   = ProgramDir + "/lifecycle"
	Fetch    = ProgramDir + "/fetch"     // downloads a buildpack by URL
	Init     = ProgramDir + "/init"      // the first process of every container
	Builder  = LifecycleDir + "/builder" // a link to the helper
	Launcher = LifecycleDir + "/launcher"
	// FileServer serves static apps; their droplets have a copy.
	FileServer = ProgramDir + "/fileserver"
	// CNBBuilder stages by Cloud Native Buildpacks; another link to the helper.
	CNBBuilder = LifecycleDir + "/" + CommandCNBBuilder
)

// Commands that the daemon runs as the first argument of Helper.
const (
	CommandSSHD        = "sshd" // serves one SSH connection on its standard streams
	CommandCNBBuilder  = "cnb-builder"
	CommandCNBLauncher = "cnb-launcher" // what Launcher becomes for a droplet of Cloud Native Buildpacks
	CommandMail        = "mail"         // the server of the service smtp, and what it keeps
	CommandDirectories = "directories"  // USER DIR…: makes directories that belong to a user
)

// Links are the names that Cloud Foundry's lifecycle has in LifecycleDir besides
// the programs, and which of these serves each.
func Links() map[string]string {
	return map[string]string{
		"builder":     "lifecycle",
		"cnb-builder": "lifecycle",
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
