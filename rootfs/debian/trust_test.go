package debian

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

const (
	testRelease = "/debian/dists/test/InRelease"
	testIndex   = "/debian/dists/test/main/binary-amd64/Packages.gz"
)

func TestBuildTrustsNothingUnsigned(t *testing.T) {
	tests := []struct {
		name   string
		change func(*testing.T, *testArchive)
		want   string
	}{
		{"other key", func(t *testing.T, a *testArchive) {
			a.key = newTestArchive(t).key
			a.sign(t, "test", a.release("test"))
		}, "signature of"},
		{"no signature", func(_ *testing.T, a *testArchive) {
			a.files[testRelease] = []byte(a.release("test"))
		}, "no signed document"},
		{"changed text", func(_ *testing.T, a *testArchive) {
			a.files[testRelease] = bytes.Replace(a.files[testRelease], []byte("Suite: test"), []byte("Suite: tost"), 1)
		}, "signature of"},
		{"changed index", func(_ *testing.T, a *testArchive) {
			raw := bytes.Clone(a.files[testIndex])
			raw[len(raw)-1]++
			a.files[testIndex] = raw
		}, "sha256 is"},
		{"longer index", func(_ *testing.T, a *testArchive) {
			a.files[testIndex] = append(bytes.Clone(a.files[testIndex]), 'x')
		}, "wrong size"},
		{"index larger than signed", func(t *testing.T, a *testArchive) {
			text := a.release("test")
			at := strings.Index(text, " main/binary-amd64/Packages\n")
			a.sign(t, "test", text[:strings.LastIndexByte(text[:at], ' ')]+" 10"+text[at:])
		}, "unpacks to more than 10 bytes"},
		{"changed package", func(_ *testing.T, a *testArchive) {
			name := "/debian/pool/dash_1_amd64.deb"
			a.files[name] = bytes.Replace(a.files[name], []byte("debian-binary"), []byte("debian-binarz"), 1)
		}, "sha256 is"},
		{"other suite", func(t *testing.T, a *testArchive) {
			a.sign(t, "test", strings.ReplaceAll(a.release("test"), ": test", ": older"))
		}, "the mirror gave suite older (older) for test"},
		{"run out", func(t *testing.T, a *testArchive) {
			a.sign(t, "test", "Valid-Until: "+time.Now().Add(-time.Hour).UTC().Format(time.RFC1123)+"\n"+a.release("test"))
		}, "ran out on"},
		{"from the future", func(t *testing.T, a *testArchive) {
			_, after, _ := strings.Cut(a.release("test"), "SHA256:")
			date := time.Now().Add(72 * time.Hour).UTC().Format(time.RFC1123)
			a.sign(t, "test", "Suite: test\nCodename: test\nDate: "+date+"\nSHA256:"+after)
		}, "set the clock"},
		{"no hashes", func(t *testing.T, a *testArchive) {
			before, _, _ := strings.Cut(a.release("test"), "SHA256:")
			a.sign(t, "test", before)
		}, "no SHA256 sums"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newTestArchive(t, base()...)
			test.change(t, a)
			o := a.options(t)
			if _, err := a.build(t, o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v; want %q", err, test.want)
			}
			wantNothing(t, filepath.Dir(o.Dest))
		})
	}
}

func TestBuildRefusesAnOlderIndex(t *testing.T) {
	a := newTestArchive(t, base()...)
	o := a.options(t)
	if _, err := a.build(t, o); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(a.release("test"), "SHA256:")
	a.sign(t, "test", "Suite: test\nDate: "+time.Now().Add(-48*time.Hour).UTC().Format(time.RFC1123)+"\nSHA256:"+after)
	o.Dest += "2"
	if _, err := a.build(t, o); err == nil || !strings.Contains(err.Error(), "seen before") {
		t.Errorf("got %v; want a refusal", err)
	}
}

// A host without the archive's keys takes them from the archive, if they are the pinned ones.
func TestBuildBootstrapsItsKeys(t *testing.T) {
	keyring := func(key *openpgp.Entity) testDeb {
		var raw bytes.Buffer
		if err := key.Serialize(&raw); err != nil {
			t.Fatal(err)
		}
		name := "./usr/share/keyrings/test-archive.gpg"
		return testDeb{name: "test-keyring", version: "1", files: []tar.Header{file(name, 0o644)}, content: map[string]string{name: raw.String()}}
	}
	a := newTestArchive(t)
	a.publish(t, "test", ".gz", append(base(), keyring(a.key))...)
	o := a.options(t)
	o.Keyrings = nil
	if _, err := a.build(t, o); err != nil {
		t.Error(err)
	}

	other := newTestArchive(t)
	a.publish(t, "test", ".gz", append(base(), keyring(other.key))...)
	a.key = other.key
	a.sign(t, "test", a.release("test"))
	o = a.options(t)
	o.Keyrings = nil
	if _, err := a.build(t, o); err == nil || !strings.Contains(err.Error(), "install ") {
		t.Errorf("got %v; want other people's keys refused", err)
	}
}

// The security pocket may be absent, but not broken.
func TestBuildNeedsSecurityToBeRight(t *testing.T) {
	a := newTestArchive(t, base()...)
	a.publish(t, "test-security", ".gz")
	a.key = newTestArchive(t).key
	a.sign(t, "test-security", a.release("test-security"))
	if _, err := a.build(t, a.options(t)); err == nil || !strings.Contains(err.Error(), "test-security") {
		t.Errorf("got %v; want the signature of test-security refused", err)
	}
}

func TestPinnedKeysAreOnThisHost(t *testing.T) {
	pins := []string{debian12Automatic, debian12Security, debian12Stable, debian13Automatic, debian13Security, debian13Stable}
	if _, err := os.Stat("/usr/share/keyrings/debian-archive-keyring.gpg"); err != nil {
		t.Skip("needs the debian-archive-keyring package")
	}
	k, err := loadKeyring(pins, nil, hostKeyrings(nil))
	if err != nil || !k.has(debian12Automatic) {
		t.Errorf("got %v, %d keys; want Debian 12's key", err, len(k.keys))
	}
	if k, err = loadKeyring([]string{ubuntu2018}, nil, []string{"/usr/share/keyrings/debian-archive-keyring.gpg"}); err != nil || len(k.keys) != 0 {
		t.Errorf("got %v, %d keys; want none but pinned ones", err, len(k.keys))
	}
}
