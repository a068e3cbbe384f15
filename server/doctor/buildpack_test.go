package doctor

import (
	"strings"
	"testing"
)

func TestBuildpacks(t *testing.T) {
	m := files(t, map[string]string{
		"usr/lib/jvm/java-17/bin/java": "", "usr/bin/python3": "-> /elsewhere/python3", "usr/local/go/bin/go": "",
		"var/lib/cupola/rootfs/stacks/mine/fs/usr/sbin/php-fpm8.2": "", "var/lib/cupola/rootfs/stacks/bare/fs/etc/": "",
	})
	r := m.buildpacks(t.Context())
	for _, want := range []string{
		"host has java, python, go, and lacks node, ruby, php, nginx, rust, r (sudo cupola stack build debian12 --with node,ruby,php,nginx,rust,r), and dotnet-core: install the .NET runtime",
		"mine has php, and lacks java,", "bare has no toolchain, and lacks java,",
	} {
		if r.Level != OK || !strings.Contains(r.Detail, want) {
			t.Errorf("got %+v; want %q", r, want)
		}
	}
}
