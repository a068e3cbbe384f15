package main

import (
	"strings"
	"testing"
)

// Ours must find what other buildpacks supplied and hand it on to the app, by
// the layout that all Cloud Foundry buildpacks share.
func TestSystemBuildpackUsesWhatOthersSupply(t *testing.T) {
	need(t, "npm")
	s := newStaging(t, map[string]string{
		"package.json": `{"scripts":{"start":"tool $GREETING; echo lib=$LD_LIBRARY_PATH","heroku-prebuild":"echo staging has $STAGED; tool there"}}`,
	})
	s.addSystem()
	s.addBuildpack("other", map[string]string{
		"bin/supply*": `#!/bin/sh
set -e
cd $3/$4
mkdir bin lib env profile.d
printf '#!/bin/sh\necho tool says $1\n' > bin/tool
chmod +x bin/tool
printf yes > env/STAGED
echo 'export GREETING=hello' > profile.d/greet.sh
`,
	})
	log := s.mustBuild("-skipDetect", "-buildpackOrder=other,nodejs_buildpack")
	for _, want := range []string{"staging has yes", "tool says there"} {
		if !strings.Contains(log, want) {
			t.Errorf("log lacks %q:\n%s", want, log)
		}
	}
	home := s.unpack()
	a := start(t, home, "")
	if err := a.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := a.out.String(), "tool says hello\nlib="+home+"/deps/0/lib\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q; want it to end in %q", got, want)
	}
}
