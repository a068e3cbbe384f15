package crash

import "testing"

func TestBrief(t *testing.T) {
	t.Parallel()
	const exited = "APP/PROC/WEB: Exited with status "
	for _, c := range []struct {
		description string
		output      []string
		want        string
	}{
		{"", []string{"hello"}, ""},
		{exited + "3", []string{"loading", "cannot reach the database", "Exit status 3"}, "Exited with status 3. Its last output: cannot reach the database"},
		{exited + "1", nil, "Exited with status 1"},
		{exited + "1", []string{"from before", StartMessage, " "}, "Exited with status 1"},
		{exited + "1", []string{"/home/vcap/app/server.js:1", "SyntaxError: Unexpected token ';'", "    at wrapSafe (node:internal)", "Node.js v20.20.2"}, "Exited with status 1. Its last output: SyntaxError: Unexpected token ';'"},
		{exited + "1", []string{"Exception in thread \"main\" java.lang.IllegalStateException: x", "\tat A.main(A.java:1)", "Caused by: java.io.IOException: refused", "\t... 1 more"}, "Exited with status 1. Its last output: Caused by: java.io.IOException: refused"},
		{exited + "2", []string{"panic: no database", "", "goroutine 1 [running]:", "main.main()"}, "Exited with status 2. Its last output: panic: no database"},
		{exited + "1", []string{"config.ru:1:in `require': cannot load such file -- sinatra (LoadError)", "\tfrom x"}, "Exited with status 1. The gem or file sinatra is not in the app: list it in the Gemfile, so that ruby_buildpack installs it (offline: bundle cache --all)"},
		{exited + "127", []string{"bash: line 1: gunicorn: command not found", "Exit status 127"},
			"Exited with status 127. The command gunicorn is missing in the app's stack, or not in its PATH: check the start command and the buildpack"},
		{exited + "137 (out of memory)", []string{"The app ran out of memory: its limit is 64M, its peak was 64M; give it more with 'cf scale -m'"},
			"Exited with status 137 (out of memory). The app ran out of memory: its limit is 64M, its peak was 64M; give it more with 'cf scale -m'"},
		{"Instance never healthy after 1m0s: Timed out after 1m0s (124 attempts) waiting for startup check to succeed: connection refused; the app listens on 0.0.0.0:3000 and not on port 8080: it must listen on the port in $PORT", nil,
			"The health check failed: the app listens on 0.0.0.0:3000 and not on port 8080: it must listen on the port in $PORT"},
		{"Instance never healthy after 5s: Timed out after 5s (15 attempts) waiting for startup check to succeed: failed to make HTTP request to '/health' on port 8080: received status code 500 in 0ms", []string{"GET /health"},
			"The health check failed: the app answered GET '/health' on port 8080 with status 500, and must answer 200: correct it, or name another path with health-check-http-endpoint, or have the health check type port"},
		{"failed to create container: root filesystem: mount x: layers of 6000104 bytes do not fit a disk of 2097152", nil,
			"The container was not created: the app unpacked has 6M, and its disk 2M: give it more with cf scale -k, or disk_quota in the manifest, or push less (.cfignore)"},
		{"failed to create container: root filesystem: unpack layer for /home/vcap: unpack app/big: no space left on device", nil,
			"The container was not created: the data directory's disk is full: ask the operator to free space on it, then run cf restart"},
		{"Codependent step exited", []string{"all done", "Exit status 0"}, "The app ended without an error: its process must go on running. Its last output: all done"},
		{exited + "127", []string{preStartMessage, StartMessage, "bash: line 1: x: command not found", "Exit status 127", "Cause: there is no command x", preStartMessage, StartMessage, "starting"}, "Exited with status 127. there is no command x"},
		{exited + "1", []string{preStartMessage, StartMessage, "one", "Exit status 1", preStartMessage, "two", "Exit status 1", preStartMessage}, "Exited with status 1. Its last output: two"},
		{"Instance never healthy after 5s: dial tcp 10.177.1.45:8080: connect: connection refused", nil, "The health check failed: nothing listens on port 8080: the app must listen on 0.0.0.0 and the port in $PORT, sooner or with a longer timeout in its manifest, or have the health check type process"},
		{`Instance never healthy after 5s: Get "http://10.177.1.45:8080/": dial tcp 10.177.1.45:8080: connect: connection refused`, nil, "The health check failed: nothing listens on port 8080: the app must listen on 0.0.0.0 and the port in $PORT, sooner or with a longer timeout in its manifest, or have the health check type process"},
		{"Instance became unhealthy: Liveness check unsuccessful: HTTP probe failed with statuscode: 503", nil, "The health check failed: the app answered with status 503, and must answer 200: correct it, or name another path with health-check-http-endpoint, or have the health check type port"},
		{`Instance became unhealthy: Liveness check unsuccessful: Get "http://10.177.1.45:8080/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, nil, "The health check failed: the app took too long to answer: answer faster, or set a longer health-check-invocation-timeout"},
		{"Instance never healthy after 1m0s: no answer", nil, "Instance never healthy after 1m0s: no answer"},
	} {
		var lines []Line
		for _, l := range c.output {
			lines = append(lines, Line{Source: "APP/PROC/WEB", Text: l})
		}
		if got := Brief(c.description, lines); got != c.want {
			t.Errorf("%s, %q: got %q; want %q", c.description, c.output, got, c.want)
		}
	}
}

// The end of a sidecar is explained by what it printed itself, and that of a process by all of its container.
func TestCrashesOfSidecars(t *testing.T) {
	t.Parallel()
	const web, side = "APP/PROC/WEB", "APP/PROC/WEB/SIDECAR/S2"
	lines := []Line{{web, StartMessage}, {web, "Serving"}, {side, StartMessage}, {side, "no config"}, {side, "Exit status 1"}, {web, "Exit status 143"}}
	for description, want := range map[string]string{
		side + ": Exited with status 1": "Sidecar S2: Exited with status 1. Its last output: no config",
		web + ": Exited with status 1":  "Exited with status 1. Its last output: no config",
		"Codependent step exited":       "The app ended without an error: its process must go on running. Its last output: no config",
	} {
		if got := Brief(description, lines); got != want {
			t.Errorf("%s: got %q; want %q", description, got, want)
		}
	}
	if got := Causes(side+": Exited with status 1", lines); len(got) != 2 || got[1] != "Its last output: no config" {
		t.Errorf("got %q", got)
	}
}
