package crash

import (
	"regexp"

	"cupola/runtime/pattern"
)

// outOfMemory is how the cell begins its line about a container that ran out of memory.
const outOfMemory = "The app ran out of memory: "

// patterns find the cause in what an app, its shell or the cell printed; the advice may use what matched. The first that matches a
// line counts.
var patterns = []struct {
	line   func() *regexp.Regexp
	advice string
}{
	{pattern.Lazy(`^Cause: (.+)$`), "$1"}, // the cell's: lrp.CausePrefix
	{pattern.Lazy(`^` + outOfMemory + `.*`), "$0"},

	{pattern.Lazy(`no start command specified or detected in droplet`), "Neither the app nor its image (ENTRYPOINT, CMD) names a start command: name it with cf push -c, or as command in the manifest"},

	// Shells.
	{pattern.Lazy(`\$'[^']*\\r'|invalid option name$|\\r': command not found`), "A script has the line ends of Windows (CR LF): convert it with dos2unix, or say '* text eol=lf' in .gitattributes, and push again"},
	{pattern.Lazy(`(?i)exec format error`), "A program is built for another processor or system: build it for Linux on this machine's processor (uname -m)"},
	{pattern.Lazy(`(\S+): bad interpreter`), "The interpreter in a script's first line is missing in the app's stack: $1. Push with a stack or buildpack that has it"},
	{pattern.Lazy(`(?:env: |exec: )[‘'"]?([^\s‘’'":]+)[’'"]?:? .*(?:No such file or directory|not found|cannot execute: required file not found)`), "The program $1, or the interpreter it names, is missing in the app's stack: push with a stack or buildpack that has it"},
	{pattern.Lazy(`(\S+): cannot execute: required file not found`), "The interpreter that the first line of $1 names, or the loader of the program, is missing in the app's stack: push with a stack or buildpack that has it, or link the program statically"},
	{pattern.Lazy(`(\S+): (?:command )?not found`), "The command $1 is missing in the app's stack, or not in its PATH: check the start command and the buildpack"},
	{pattern.Lazy(`(?:ba)?sh: (?:line )?\d*:? ?(\S+): Permission denied`), "A file may not be executed: chmod +x $1, then push again"},

	// Languages.
	{pattern.Lazy(`Cannot find (?:module|package) '([^']+)'`), "The module $1 is not in the app: list it in package.json, run npm install, and push node_modules with the app, or let nodejs_buildpack install it"},
	{pattern.Lazy(`ModuleNotFoundError: No module named '([^']+)'`), "The module $1 is not in the app: list it in requirements.txt, so that python_buildpack installs it (offline: pip download -d vendor -r requirements.txt)"},
	{pattern.Lazy(`cannot load such file -- (\S+)`), "The gem or file $1 is not in the app: list it in the Gemfile, so that ruby_buildpack installs it (offline: bundle cache --all)"},
	{pattern.Lazy(`Could not find (\S+) in (?:any of the sources|locally installed gems|cached gems)`), "The gem $1 is not in the app: run bundle cache --all, and push vendor/cache with the app"},
	{pattern.Lazy(`no main manifest attribute, in (\S+)`), "The manifest of $1 names no Main-Class: build an executable jar (Spring Boot: bootJar, or the goal repackage), or start it as java -cp $1 CLASS"},
	{pattern.Lazy(`Invalid or corrupt jarfile (\S+)`), "$1 is not an executable jar: it has no manifest, or is cut off. Build it again (Spring Boot: bootJar, or the goal repackage), and push what that makes"},
	{pattern.Lazy(`Unable to access jarfile (\S+)`), "There is no file $1 in the app: check the start command, and path in the manifest"},
	{pattern.Lazy(`UnsupportedClassVersionError: (\S+)`), "$1 is built for a newer Java than the stack's: build it with an older --release, or push with a stack that has the newer one"},
	{pattern.Lazy(`java\.lang\.OutOfMemoryError: (.+)`), "The JVM has too little memory ($1): give the app more with cf scale -m"},
	{pattern.Lazy(`error while loading shared libraries: ([^\s:]+)`), "The library $1 is missing in the app's stack: push with a stack that has it, bring it in the app (LD_LIBRARY_PATH), or link the program statically"},
	{pattern.Lazy("version `(\\S+)' not found"), "The program is built for a newer C library ($1) than the stack's: build it on the app's stack, or statically"},

	// Limits, and what is not there.
	{pattern.Lazy(`(?i)no space left on device|disk quota exceeded`), "The app used up its disk quota: give it more with cf scale -k, or write less"},
	{pattern.Lazy(`(?i)too many open files|EMFILE`), "The app used up its open files, of which a process may have 16384: close files and connections, or run more instances"},
	{pattern.Lazy(`(?i)(?:fork|pthread_create|clone|thread).*resource temporarily unavailable|can't start new thread`), "The app used up its processes and threads: start fewer, or run more instances"},
	{pattern.Lazy(`(?i)address already in use|EADDRINUSE`), "Another process of the app has the port: start one server only, on the port in $$PORT"},
	{pattern.Lazy(`(?i)cannot assign requested address|EADDRNOTAVAIL`), "The app listens on an address that its container does not have: listen on 0.0.0.0 and the port in $$PORT (containers have no IPv6)"},
	{pattern.Lazy(`(?i)(?:connect|dial).*?((?:127\.0\.0\.1|localhost|\[?::1\]?):\d+).*refused|ECONNREFUSED (127\.0\.0\.1:\d+|::1:\d+)`), "The app connects to $1$2, its own container, where nothing listens: bind the service, and take its address from VCAP_SERVICES"},
	{pattern.Lazy(`(\S+): No such file or directory`), "A file is missing: $1. Check the start command, .cfignore, and the app's stack"},
}
