package push

import (
	"archive/zip"
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"

	"cupola/test/e2e"
)

// mistake is what a developer does wrong.
type mistake struct {
	name        string // of the app, too
	cause, mend string // must be in what is said
	file        string // of the app: NAME CONTENT
	manifest    string // the lines of the app but for its name
	needs       string // a program of this machine; by default python3
	noApp       bool   // the app is not made
	later       bool   // the push succeeds, and the app crashes later
	before      func(d *e2e.Daemon) (space string)
}

// onHost runs a command on the machine's own stack, without a buildpack's help.
func onHost(command string) string {
	return "stack: host\nbuildpacks: [binary_buildpack]\n" + quoted(command)
}

// The timeouts of starts that never come: soon of what does not listen in an hour, either. Others end before the default timeout, on a
// busy machine, too.
const (
	soon  = "timeout: 1\n"
	later = "timeout: 2\n"
)

// elf is the head of a program for a processor (62: amd64, 183: arm64) with a loader.
func elf(processor byte, loader string) string {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	size := string([]byte{byte(len(loader) + 1)}) + zeros(7)
	return "\x7fELF\x02\x01\x01" + zeros(9) + "\x02\x00" + string([]byte{processor}) + "\x00\x01" + zeros(3) +
		"\x78\x00\x40" + zeros(5) + "\x40" + zeros(7) + zeros(8) + zeros(4) + "\x40\x00\x38\x00\x01\x00" + zeros(6) +
		"\x03" + zeros(3) + "\x04" + zeros(3) + "\x78" + zeros(7) + zeros(16) + size + size + "\x01" + zeros(7) + loader + "\x00"
}

// processors are this machine's and another one, as ELF numbers them.
func processors() (ours, other byte) {
	if runtime.GOARCH == "arm64" {
		return 183, 62
	}
	return 62, 183
}

// jar is an archive with a file.
func jar(name, content string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create(name)
	if err == nil {
		_, err = f.Write([]byte(content))
	}
	if err != nil || z.Close() != nil {
		panic("an archive in memory was not written")
	}
	return b.String()
}

// noise is content that no archive makes smaller.
func noise(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return string(b)
}

// slowServer answers a request after longer than a health check waits.
const slowServer = `import http.server, os, time
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self): time.sleep(100)
http.server.HTTPServer(("", int(os.environ["PORT"])), Slow).serve_forever()
`

// oomLater listens, and uses up its memory a second later.
const oomLater = `import http.server, os, threading, time
threading.Thread(target=http.server.HTTPServer(("", int(os.environ["PORT"])), http.server.SimpleHTTPRequestHandler).serve_forever).start()
time.sleep(1)
x = bytearray(200 << 20)
`

// kinds are all mistakes, by what happens.
func kinds() [][]mistake {
	return [][]mistake{unheard(), ended(), notExecuted(), unbuilt(), refused()}
}

// unheard do not answer their health check.
func unheard() []mistake {
	return []mistake{
		{name: "wrong-port", manifest: onHost("python3 -m http.server 9090") + later, cause: "the app listens on 0.0.0.0:9090 and not on port 8080", mend: "it must listen on the port in $PORT"},
		{name: "loopback", manifest: onHost("python3 -m http.server --bind 127.0.0.1 $PORT") + later, cause: "the app listens on 127.0.0.1:8080, which only its own container reaches", mend: "it must listen on 0.0.0.0:8080"},
		{name: "loopback-6", manifest: onHost("python3 -m http.server --bind ::1 $PORT"), cause: "The app listens on an address that its container does not have", mend: "listen on 0.0.0.0"},
		{name: "no-port", manifest: onHost("exec sleep 1000") + soon, cause: "the app listens on no port", mend: "have the health check type process"},
		{name: "late", manifest: onHost("sleep 60; exec python3 -m http.server $PORT") + soon, cause: "the app listens on no port", mend: "with a longer timeout in its manifest"},
		{name: "http-404", manifest: onHost("exec python3 -m http.server $PORT") + "timeout: 6\nhealth-check-invocation-timeout: 5\nhealth-check-type: http\nhealth-check-http-endpoint: /health\n",
			cause: "the app answered GET '/health' on port 8080 with status 404", mend: "name another path with health-check-http-endpoint"},
		{name: "http-slow", file: "app.py " + slowServer, manifest: onHost("exec python3 app.py") + later + "health-check-type: http\n", cause: "the app took longer than 1.00 s to answer GET '/' on port 8080", mend: "set a longer health-check-invocation-timeout"},
	}
}

// ended end by themselves.
func ended() []mistake {
	return []mistake{
		{name: "exits-0", manifest: onHost("echo all done"), cause: "The app ended without an error: its process must go on running", mend: "cf run-task"},
		{name: "exits-1", manifest: onHost("echo cannot reach the database; exit 1"), cause: "cannot reach the database", mend: "cf logs APP --recent"},
		{name: "segfault", manifest: onHost("kill -SEGV $$"), cause: "ignal 11: it accessed memory that is not its own", mend: "build its native modules on the app's stack again"},
		{name: "abort", manifest: onHost("kill -ABRT $$"), cause: "ignal 6: it aborted itself", mend: "its last lines name the check"},
		{name: "killed", manifest: onHost("kill -KILL $$"), cause: "ignal 9: killed, and not for memory", mend: "look for kill in its scripts"},
		{name: "oom", manifest: onHost("python3 -c 'x = bytearray(200 << 20)'") + "memory: 32M\n", cause: "The app ran out of memory: its limit is 32M, its peak was 3", mend: "give it more with 'cf scale -m'"},
		{name: "oom-later", file: "app.py " + oomLater, manifest: onHost("exec python3 app.py"), later: true, cause: "The app ran out of memory: its limit is 64M, its peak was 6", mend: "give it more with 'cf scale -m'"},
		{name: "disk-full", manifest: onHost("head -c 200M /dev/zero > big"), cause: "The app used up its disk quota", mend: "cf scale -k"},
		{name: "too-large", file: "big " + noise(6<<20), manifest: onHost("sleep 1") + "disk_quota: 2M\n", cause: "the app unpacked has 7M, and its disk 2M", mend: "cf scale -k"},
		{name: "open-files", manifest: onHost("exec python3 -c \"x = [open('/dev/null') for i in range(20000)]\"") + "memory: 256M\n", cause: "The app used up its open files, of which a process may have 16384", mend: "close files and connections"},
		{name: "node-module", needs: "node", file: "server.js require('express')\n", manifest: onHost("node server.js") + "memory: 128M\n", cause: "The module express is not in the app", mend: "list it in package.json"},
		{name: "python-module", file: "app.py import no_such_module\n", manifest: onHost("python3 app.py"), cause: "The module no_such_module is not in the app", mend: "list it in requirements.txt"},
		{name: "ruby-gem", needs: "ruby", file: "app.rb require 'no_such_gem'\n", manifest: onHost("ruby app.rb"), cause: "The gem or file no_such_gem is not in the app", mend: "list it in the Gemfile"},
		{name: "jar-manifest", needs: "java", file: "app.jar " + jar("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n"), manifest: onHost("java -jar app.jar") + "memory: 256M\n", cause: "The manifest of app.jar names no Main-Class", mend: "build an executable jar"},
		{name: "no-jar", needs: "java", file: "app.jar cut off", manifest: onHost("java -jar app.jar") + "memory: 256M\n", cause: "app.jar is not an executable jar", mend: "Build it again"},
	}
}

// notExecuted have a start command that cannot be executed.
func notExecuted() []mistake {
	ours, other := processors()
	return []mistake{
		{name: "misspelt", manifest: onHost("pyhton3 -m http.server $PORT"), cause: "There is no command pyhton3 in the app or its stack", mend: "did you mean python3?"},
		{name: "no-program", manifest: onHost("no-such-program --serve"), cause: "There is no command no-such-program", mend: "add what brings it to the app's dependencies"},
		{name: "no-file", file: "server.sh* #!/bin/sh\n", manifest: onHost("./sever.sh"), cause: "There is no file ./sever.sh", mend: "did you mean ./server.sh?"},
		{name: "not-executable", file: "run #!/bin/sh\n", manifest: onHost("./run"), cause: "./run is not executable", mend: "run chmod +x ./run"},
		{name: "env-interpreter", file: "run* #!/usr/bin/env pyhton3\n", manifest: onHost("./run"), cause: "There is no command pyhton3", mend: "did you mean python3?"},
		{name: "interpreter", file: "run* #!/usr/bin/pyhton3\n", manifest: onHost("./run"), cause: "The first line of ./run names the interpreter /usr/bin/pyhton3, which the app's stack does not have", mend: "did you mean /usr/bin/python3?"},
		{name: "loader", file: "run* " + elf(ours, "/lib/ld-musl-other.so.1"), manifest: onHost("./run"), cause: "./run needs the loader /lib/ld-musl-other.so.1, which the app's stack does not have (it is built for Alpine)", mend: "build it statically"},
		{name: "processor", file: "run* " + elf(other, "/lib/ld-linux.so.1"), manifest: onHost("./run"), cause: "./run is a program for ", mend: "build it for linux/"},
		{name: "windows-lines", file: "run* #!/bin/sh\r\nexit 0\r\n", manifest: onHost("./run"), cause: "./run has the line ends of Windows", mend: "convert it with dos2unix"},
		{name: "windows-script", file: "run cd sub\r\n", manifest: onHost("bash run; exit 1"), cause: "A script has the line ends of Windows", mend: "convert it with dos2unix"},
	}
}

// unbuilt do not stage.
func unbuilt() []mistake {
	return []mistake{
		{name: "no-command", manifest: "stack: host\nbuildpacks: [binary_buildpack]\n", cause: "neither the app, its buildpack nor a Procfile names a start command", mend: "name it with cf push -c"},
		{name: "nothing-detected", file: "main.py print(1)\n", manifest: "stack: host\n", cause: "no buildpack takes the app", mend: "Nearest guess: a Python app: add a requirements.txt"},
		{name: "ruby-version", needs: "ruby", file: "Gemfile ruby '1.9.3'\n", manifest: "stack: host\nbuildpacks: [ruby_buildpack]\n", cause: "the Gemfile asks for Ruby 1.9.3, which stack 'host' does not have", mend: "ask for one of these"},
		{name: "node-version", needs: "node", file: `package.json {"name": "x", "engines": {"node": "4.0.0"}}`, manifest: "stack: host\nbuildpacks: [nodejs_buildpack]\n", cause: "engines.node of package.json asks for node 4.0.0, which stack 'host' does not have", mend: "ask for one of these"},
		{name: "no-files", file: "none", manifest: "stack: host\n", cause: "no files to push", mend: "push the directory that has the app's files"},
	}
}

// refused are those that the API refuses.
func refused() []mistake {
	return []mistake{
		{name: "memory-quota", manifest: onHost("sleep 1"), cause: "memory space_quota_exceeded", mend: "cf scale -m", before: func(d *e2e.Daemon) string {
			return space(d, "little-memory", e2e.Doc{"apps": e2e.Doc{"total_memory_in_mb": 32}})
		}},
		{name: "instance-memory", manifest: onHost("sleep 1"), cause: "instance memory", mend: "give the app less memory (cf push -m)", before: func(d *e2e.Daemon) string {
			return space(d, "little-instances", e2e.Doc{"apps": e2e.Doc{"per_process_memory_in_mb": 32}})
		}},
		{name: "route-quota", manifest: onHost("sleep 1"), cause: "Routes quota exceeded for space", mend: "cf delete-orphaned-routes", before: func(d *e2e.Daemon) string {
			return space(d, "no-routes", e2e.Doc{"routes": e2e.Doc{"total_routes": 0}})
		}},
		{name: "route-elsewhere", manifest: onHost("sleep 1") + "routes: [{route: taken.localhost}]\n", cause: "Routes cannot be mapped to destinations in different spaces", mend: "choose another host name", before: func(d *e2e.Daemon) string {
			routeElsewhere(d, "taken")
			return "dev"
		}},
		{name: "reserved-host", manifest: onHost("sleep 1") + "routes: [{route: api.localhost}]\n", cause: "Route conflicts with a reserved system route", mend: "choose another one"},
		{name: "no-domain", manifest: onHost("sleep 1") + "routes: [{route: x.example.com}]\n", cause: "No domains exist for route x.example.com", mend: "cf domains"},
		{name: "no-service", manifest: onHost("sleep 1") + "services: [my-db]\n", cause: "Service instance 'my-db' not found", mend: "cf create-service"},
		{name: "long-variable", manifest: onHost("sleep 1") + "env: {LONG: " + strings.Repeat("x", 130<<10) + "}\n", cause: "Environment variable 'LONG' is too long", mend: "keep long values in a file"},
		{name: "no-stack", manifest: "stack: cflinuxfs9\n", cause: "Stack must be an existing stack", mend: "cf stacks"},
		{name: "no-buildpack", noApp: true, manifest: "buildpacks: [pyhton_buildpack]\n", cause: `Specified unknown buildpack name: "pyhton_buildpack"`, mend: "cf buildpacks"},
	}
}
