package routing

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"cupola/test/e2e"
	"cupola/test/loopback"
)

// browserScript fetches a page with Chromium, whose user has a database of certificates:
// before the CA is trusted, after that, and after it was removed. The system's own store
// is not touched.
const browserScript = `
cupola=$1 data=$2 home=$3 url=$4
mount -t tmpfs tmpfs /usr/local/share/ca-certificates
cp -a /etc/ssl/certs $home/certs
mount --bind $home/certs /etc/ssl/certs
unset SUDO_USER http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
export HOME=$home
mkdir -p $home/.pki/nssdb
certutil -N -d sql:$home/.pki/nssdb --empty-password
fetch() {
	for attempt in 1 2 3 4 5; do # Chromium gives a page up when a link of the machine changes; some versions say in an error why a page is not shown
		page=$(timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=$home/profile --host-resolver-rules="MAP *.example 127.0.0.1" --dump-dom $url 2>&1) || true
		case $page in
		*net::ERR_CERT_AUTHORITY_INVALID*) echo "$1 refused"; return ;;
		*"<pre"*">ready"*) echo "$1 accepted"; return ;;
		esac
	done
	echo "$1 neither accepted nor refused: $page"
}
fetch before
$cupola trust --data-dir $data
fetch trusted
$cupola trust --data-dir $data --remove
fetch removed
`

// TestBrowserTrusts lets Chromium show an app's page by HTTPS.
func TestBrowserTrusts(t *testing.T) {
	binary := e2e.NeedBinary(t)
	for _, program := range []string{"chromium", "certutil", "update-ca-certificates"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	port := loopback.FreePorts(t, 1)[0]
	d := e2e.StartDaemon(t, binary, "--https", fmt.Sprintf("127.0.0.1:%d", port))
	d.PushProbe("probe")
	var shop struct{ GUID string }
	d.API("POST", "/v3/domains", e2e.Doc{"name": "shop.example"}, &shop)
	mapTo(d, "www", shop.GUID)
	answersAt(d, d.Addr, "www.shop.example", 200, "")
	home := t.TempDir()
	cmd := e2e.WithMounts("set -- \"$@\"", exec.Command("sh", "-ec", browserScript, "browser", d.Binary, d.Dir, home, fmt.Sprintf("https://www.shop.example:%d/", port)))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"before refused", "  trusted by   the browser's database " + filepath.Join(home, ".pki/nssdb"), "trusted accepted", "removed refused"} {
		wantLine(t, string(out), want)
	}
}
