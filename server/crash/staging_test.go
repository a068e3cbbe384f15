package crash

import (
	"strings"
	"testing"
)

// The last staging counts, and of its log the line that says most.
func TestBuild(t *testing.T) {
	t.Parallel()
	const compile = "BuildpackCompileFailed - App staging failed in the buildpack compile phase"
	const other = "StagingError - Staging error: staging failed"
	begins := "Cell cupola " + stagingBegins + " x"
	for _, c := range []struct {
		failure string
		log     []string
		want    string
	}{
		{compile, []string{"**ERROR** of the staging before", begins, "       **ERROR** the Gemfile asks for Ruby 1.9.3, which stack 'host' does not have. Available versions: [3.1.2]", "Exit status 223"},
			"the Gemfile asks for Ruby 1.9.3, which stack 'host' does not have. Available versions: [3.1.2]: ask for one of these"},
		{compile, []string{begins, "**ERROR** go.mod asks for Go >=1.24, which stack 'host' does not have. Available versions: [1.19.8]. Push with -s debian13, which has 1.24.4"},
			"go.mod asks for Go >=1.24, which stack 'host' does not have. Available versions: [1.19.8]. Push with -s debian13, which has 1.24.4"},
		{compile, []string{begins, "**ERROR** no network: run npm ci", "Staging failed: x"}, "no network: run npm ci"},
		{compile, []string{"**ERROR** of the staging before", begins, "tar: No space left on device"}, "staging used up its disk"},
		{compile, []string{begins, "No start command specified by buildpack or via Procfile.", "Failed to upload payload for droplet: the cell's disk is full"}, "the data directory's disk is full: ask the operator"},
		{compile, []string{begins, "Exit status 137 (out of memory)"}, "staging used up its memory"},
		{compile, []string{begins, "Staging failed: the archive is cut off"}, "the archive is cut off"},
		{other, []string{begins, "Failed to download buildpack 'https://example.com/none.zip': 404 Not Found", "Exit status 1"},
			"cannot download buildpack 'https://example.com/none.zip': 404 Not Found. Correct its address"},
		{other, []string{begins, "Failed to read command from Procfile: yaml: line 2: mapping values are not allowed", "Exit status 1"}, "Failed to read command from Procfile: yaml: line 2"},
		{compile, []string{begins, "nothing"}, ""},
		{"NoAppDetectedError - x", []string{begins, "No buildpack takes this app. It has: main.py", "Nearest guess: a Python app"}, "no buildpack takes the app. Nearest guess: a Python app"},
		{"NoAppDetectedError - x", []string{begins, "No buildpack takes this app. It has: x"}, "No buildpack takes this app. It has: x. Push the directory"},
		{"StagingError - Staging error: Start command not specified", nil, "neither the app, its buildpack nor a Procfile names a start command"},
		{"InsufficientResources - insufficient resources: memory", nil, "no cell has room for staging"},
	} {
		lines := []Line{{Source: "APP/PROC/WEB", Text: "**ERROR** of the app"}}
		for _, text := range c.log {
			lines = append(lines, Line{Source: "STG", Text: text})
		}
		if got := Build(c.failure, lines); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s, %q: got %q; want %q", c.failure, c.log, got, c.want)
		}
	}
}

func TestCausesOfLanguages(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chalk' imported from /x": "The module chalk is not in the app",
		"./x: error while loading shared libraries: libpq.so.5: cannot open shared":  "The library libpq.so.5 is missing",
		"./x: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./x)":      "The program is built for a newer C library (GLIBC_2.38)",
		"Error: connect ECONNREFUSED 127.0.0.1:5432":                                 "The app connects to 127.0.0.1:5432, its own container",
		"dial tcp 127.0.0.1:6379: connect: connection refused":                       "The app connects to 127.0.0.1:6379, its own container",
		"java.lang.OutOfMemoryError: Java heap space":                                "The JVM has too little memory (Java heap space)",
		"Error: listen EADDRINUSE: address already in use :::8080":                   "Another process of the app has the port",
		"run: line 1: $'exit\\r': command not found":                                 "A script has the line ends of Windows",
		"RuntimeError: can't start new thread":                                       "The app used up its processes and threads",
		"bash: fork: retry: Resource temporarily unavailable":                        "The app used up its processes and threads",
		"open /data: too many open files":                                            "The app used up its open files",
		"Could not find rack-3.1.0 in any of the sources":                            "The gem rack-3.1.0 is not in the app",
		"Error: Unable to access jarfile app.jar":                                    "There is no file app.jar in the app",
		"cannot reach 10.0.0.1:5432: connection refused":                             "",
		"GET /x: Permission denied":                                                  "",
	} {
		got := adviceOf([]Line{{Source: "APP/PROC/WEB", Text: said}})
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q; want %q", said, got, want)
		}
	}
}

func TestHealthCause(t *testing.T) {
	t.Parallel()
	const never = "Instance never healthy after 3s: Timed out after 3s (5 attempts) waiting for startup check to succeed: "
	for description, want := range map[string]string{
		never + "failed to make HTTP request to '/' on port 8080: timed out after 1.00 seconds":                                                                                "the app took longer than 1.00 s to answer GET '/' on port 8080",
		never + "failed to make HTTP request to '/' on port 8080: connection refused":                                                                                          "the app closed the connection of GET '/' on port 8080 without an HTTP answer",
		"Instance became unhealthy: Liveness check unsuccessful: failed to make TCP connection to 10.0.0.1:8080: timed out after 1.00 seconds":                                 "the app listens on port 8080, and took longer than 1.00 s",
		"Instance became unhealthy: Liveness check unsuccessful: failed to make HTTP request to '/health' on port 8080: received status code 500 in 3ms; the app listens on x": "the app listens on x",
		"APP/PROC/WEB: Exited with status 1": "",
		never + "no answer":                  "",
	} {
		if got := healthCause(description); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q; want %q", description, got, want)
		}
	}
}

func TestMend(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Buildpack "x" for stack "y" must be an existing admin buildpack or a valid git URI`: "list the buildpacks with cf buildpacks",
		"memory quota_exceeded": "see cf org ORG", "memory space_quota_exceeded": "see cf space SPACE", "memory space_instance_memory_limit_exceeded": "give the app less memory",
		"an instance cannot be placed: insufficient resources: memory": "no cell has that much", "something else": "",
		"Unschedulable: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)": "no node of the cluster has that much left",
	} {
		if got := Mend(text); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q; want %q", text, got, want)
		}
	}
}
