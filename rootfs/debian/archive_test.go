package debian

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
	"github.com/klauspost/compress/zstd"
)

// A testDeb describes a package of a synthetic archive.
type testDeb struct {
	name, version string
	fields        string // further lines of the control file
	scripts       map[string]string
	compress      string // "", ".gz", ".xz" or ".zst"
	files         []tar.Header
	content       map[string]string // of regular files, by name
}

// file makes a tar header; a content makes it a regular file.
func file(name string, mode int64) tar.Header {
	return tar.Header{Name: name, Mode: mode, Typeflag: tar.TypeReg}
}

func dir(name string, mode int64) tar.Header {
	return tar.Header{Name: name + "/", Mode: mode, Typeflag: tar.TypeDir}
}

func symlink(name, target string) tar.Header {
	return tar.Header{Name: name, Linkname: target, Mode: 0o777, Typeflag: tar.TypeSymlink}
}

func hardlink(name, target string) tar.Header {
	return tar.Header{Name: name, Linkname: target, Mode: 0o644, Typeflag: tar.TypeLink}
}

func (d testDeb) control() string {
	return fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\n%s", d.name, d.version, d.fields)
}

func (d testDeb) build(t testing.TB) []byte {
	t.Helper()
	control := map[string]string{"./control": d.control()}
	var headers []tar.Header
	for name, text := range d.scripts {
		control["./"+name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(control)) {
		headers = append(headers, file(name, 0o644))
	}
	return arFile(
		"debian-binary", []byte("2.0\n"),
		"control.tar.gz", compressed(t, ".gz", tarFile(t, headers, control)),
		"data.tar"+d.compress, compressed(t, d.compress, tarFile(t, d.files, d.content)),
	)
}

func tarFile(t testing.TB, headers []tar.Header, content map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.ModTime = time.Unix(1_600_000_000, 0)
		h.Size = int64(len(content[h.Name]))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content[h.Name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// arFile takes names and contents in turn.
func arFile(members ...any) []byte {
	var b bytes.Buffer
	b.WriteString(arMagic)
	for i := 0; i < len(members); i += 2 {
		content := members[i+1].([]byte)
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", members[i], 0, 0, 0, 0o644, len(content))
		b.Write(content)
		if len(content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func compressed(t testing.TB, ext string, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	switch ext {
	case ".gz":
		w := gzip.NewWriter(&b)
		w.Write(raw)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	case ".zst":
		w, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(raw)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	case ".xz":
		return xzStored(raw)
	default:
		return raw
	}
	return b.Bytes()
}

// xzStored wraps raw as an .xz file of uncompressed LZMA2 chunks: there is no xz
// encoder among the project's modules.
func xzStored(raw []byte) []byte {
	crc := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(b)) }
	flags := []byte{0, 0} // no check of the contents
	var b bytes.Buffer
	b.WriteString("\xfd7zXZ\x00")
	b.Write(flags)
	b.Write(crc(flags))
	header := []byte{0x02, 0x00, 0x21, 0x01, 0x16, 0, 0, 0} // one LZMA2 filter, 8 MiB dictionary
	b.Write(header)
	b.Write(crc(header))
	start := b.Len() - len(header) - 4
	kind := byte(1) // the first chunk resets the dictionary
	for chunk := range slices.Chunk(raw, 1<<16) {
		b.WriteByte(kind)
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(chunk)-1)))
		b.Write(chunk)
		kind = 2
	}
	b.WriteByte(0)
	unpadded := b.Len() - start
	for b.Len()%4 != 0 {
		b.WriteByte(0)
	}
	index := []byte{0, 1}
	index = binary.AppendUvarint(index, uint64(unpadded))
	index = binary.AppendUvarint(index, uint64(len(raw)))
	for len(index)%4 != 0 {
		index = append(index, 0)
	}
	b.Write(index)
	b.Write(crc(index))
	footer := binary.LittleEndian.AppendUint32(nil, uint32(len(index)+4)/4-1)
	footer = append(footer, flags...)
	b.Write(crc(footer))
	b.Write(footer)
	b.WriteString("YZ")
	return b.Bytes()
}

// A testArchive is a signed archive on its own server.
type testArchive struct {
	*httptest.Server
	key     *openpgp.Entity
	keyFile string
	suite   suite

	mu    sync.Mutex
	files map[string][]byte // by URL path
	asked []string
	serve func(w http.ResponseWriter, r *http.Request, content []byte) bool // nil or true: as usual
}

// newTestArchive serves a suite "test" of one needed pocket "test" and a security
// pocket that is absent until published.
func newTestArchive(t testing.TB, debs ...testDeb) *testArchive {
	t.Helper()
	key, err := openpgp.NewEntity("test", "", "test@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &testArchive{key: key, files: make(map[string][]byte), keyFile: filepath.Join(t.TempDir(), "test.gpg")}
	var raw bytes.Buffer
	if err := key.Serialize(&raw); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.keyFile, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	a.suite = suite{
		distro: "Debian", codename: "test", components: []string{"main"}, keys: []string{fingerprint(key)}, keyring: "test-keyring",
		pockets: []pocket{{name: "test", needed: true}, {name: "test-security", security: true}},
	}
	a.Server = httptest.NewServer(http.HandlerFunc(a.handle))
	t.Cleanup(a.Close)
	a.publish(t, "test", ".gz", debs...)
	return a
}

func (a *testArchive) handle(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	content, ok := a.files[r.URL.Path]
	a.asked = append(a.asked, r.URL.Path)
	serve := a.serve
	a.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	if serve == nil || serve(w, r, content) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// root is the base path of a pocket: Debian's security archive lies beside.
func root(pocket string) string {
	if strings.HasSuffix(pocket, "-security") {
		return "/debian-security"
	}
	return "/debian"
}

// publish puts debs, an index with extension ext, and a signed release there.
func (a *testArchive) publish(t testing.TB, pocket, ext string, debs ...testDeb) {
	t.Helper()
	var index strings.Builder
	for _, d := range debs {
		raw := d.build(t)
		name := "pool/" + d.name + "_" + strings.ReplaceAll(d.version, ":", "") + "_amd64.deb"
		a.files[root(pocket)+"/"+name] = raw
		fmt.Fprintf(&index, "%sFilename: %s\nSize: %d\nSHA256: %s\n\n", withNewline(d.control()), name, len(raw), sum(raw))
	}
	plain := []byte(index.String())
	packed := compressed(t, ext, plain)
	a.files[root(pocket)+"/dists/"+pocket+"/main/binary-amd64/Packages"+ext] = packed
	a.sign(t, pocket, fmt.Sprintf("Suite: %s\nCodename: %s\nDate: %s\nSHA256:\n %s %d main/binary-amd64/Packages\n %s %d main/binary-amd64/Packages%s\n",
		pocket, pocket, time.Now().UTC().Add(-time.Hour).Format(time.RFC1123), sum(plain), len(plain), sum(packed), len(packed), ext))
}

func withNewline(s string) string { return strings.TrimSuffix(s, "\n") + "\n" }

// sign publishes text as the pocket's InRelease.
func (a *testArchive) sign(t testing.TB, pocket, text string) {
	t.Helper()
	var b bytes.Buffer
	key, _ := a.key.SigningKey(time.Now(), nil)
	w, err := clearsign.Encode(&b, key.PrivateKey, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a.files[root(pocket)+"/dists/"+pocket+"/InRelease"] = b.Bytes()
}

// release returns the signed text of a pocket's InRelease.
func (a *testArchive) release(pocket string) string {
	block, _ := clearsign.Decode(a.files[root(pocket)+"/dists/"+pocket+"/InRelease"])
	return string(block.Plaintext)
}

// testUser is the user whom testExtras adds.
const testUser = 2000

func testExtras() Extras {
	return Extras{
		Users: []User{{Name: "vcap", ID: testUser, Home: "home/vcap", Dirs: []string{"home/vcap/app"}}}, Links: map[string]string{"app": "/home/vcap/app"},
		Locale: "en_US.UTF-8", OpenSSL: []string{"/tmp/app/openssl.cnf", "/home/vcap/app/openssl.cnf"},
	}
}

func (a *testArchive) options(t testing.TB) Options {
	t.Helper()
	return Options{
		Suite: "test", Arch: "amd64", Mirror: a.URL + "/debian", Dest: filepath.Join(t.TempDir(), "stack"),
		Keyrings: []string{a.keyFile}, CacheDir: t.TempDir(), Client: a.Client(), Variant: "none", Extras: testExtras(),
	}
}

// build builds from the archive as Build would.
func (a *testArchive) build(t testing.TB, o Options) (Result, error) {
	t.Helper()
	return build(t.Context(), o, a.suite, fstest.MapFS{})
}

func sum(raw []byte) string {
	s := sha256.Sum256(raw)
	return hex.EncodeToString(s[:])
}

// asks counts the requests for paths that end in suffix.
func (a *testArchive) asks(suffix string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, path := range a.asked {
		if strings.HasSuffix(path, suffix) {
			n++
		}
	}
	return n
}
