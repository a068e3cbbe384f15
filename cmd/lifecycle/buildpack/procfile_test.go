package buildpack

import "testing"

func TestDetectProcfile(t *testing.T) {
	for procfile, want := range map[string]bool{
		"web: ./run --port $PORT\n": true, "web: ./absent\n": false, "web: ./plain\n": false, "web: no-such-program\n": false, "web: sh run\n": true, "web: A=1 B=2 exec sh -c 'x'\n": true,
		"worker: ./absent\nweb: ./run\n": true, "worker: ./run\n": true, "web: $HOME/bin/tool\n": true, "web: cd sub && ./x\n": true, "web: sleep 1; exit 4\n": true, "web: \"./run\"\n": true,
		"": false, "web\n": false, "web: \n": false, "- web\n": false, "web: /no/such/program\n": false,
	} {
		app := tree(t, map[string]string{"Procfile": procfile, "run*": "#!/bin/sh\n", "plain": "", "bin/tool*": ""})
		if got := detectProcfile(app); got != want {
			t.Errorf("%q: got %v; want %v", procfile, got, want)
		}
		if detectBinary(tree(t, map[string]string{"Procfile": procfile})) {
			t.Errorf("binary takes a Procfile alone: %q", procfile)
		}
	}
}
