package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"cupola/store"
	"cupola/store/cf"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

var droplet = []byte("the bits of a droplet")

// tree is a directory as a backup is gathered in: a database that names a blob
// and an image, and both.
func tree(t testing.TB) string {
	t.Helper()
	dir, from := t.TempDir(), t.TempDir()
	s, err := store.Open(store.Config{Dir: from})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	manifest := []byte("a manifest")
	digest := "sha256:" + sum(manifest)
	err = s.Write(context.Background(), func(tx *store.Tx) error {
		org := &cf.Org{Name: "org"}
		err := store.Orgs.Insert(tx, org)
		space := &cf.Space{Name: "dev", OrgGUID: org.GUID}
		err = errors.Join(err, store.Spaces.Insert(tx, space))
		app := &cf.App{Name: "hello", SpaceGUID: space.GUID, State: cf.Stopped}
		err = errors.Join(err, store.Apps.Insert(tx, app))
		return errors.Join(err, store.Settings.Set(tx, "token", "secret"), store.Droplets.Insert(tx, &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Digest: sum(droplet),
			Lifecycle: cf.Lifecycle{Image: &cf.StackImage{Reference: "docker://reg.io/a@" + digest}}}))
	})
	put := func(name string, content []byte) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600))
	}
	put(BlobName(sum(droplet)), droplet)
	put("rootfs/oci/"+sum(manifest), manifest)
	put(ImagesDir+"/"+sum(manifest)+".json", fmt.Appendf(nil, `{"Digest":%q,"Blobs":[%q]}`, digest, sum(manifest)))
	put(StacksDir+"/mine/stack.json", []byte(`{"Name":"mine","HasTree":true}`))
	put(StacksDir+"/mine/fs.tar", []byte("a tar"))
	err = errors.Join(err, os.MkdirAll(filepath.Join(dir, "db"), 0o700), s.Snapshot(context.Background(), filepath.Join(dir, "db")))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// schema is the number of the newest.
func schema(t testing.TB, dir string) int {
	t.Helper()
	c, err := store.Inspect(context.Background(), filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Schema
}

// plain is a backup that is not compressed.
func plain(t testing.TB, dir string, m Manifest) []byte {
	t.Helper()
	if m.Schema == 0 {
		m.Schema = schema(t, dir)
	}
	s, err := NewSource(context.Background(), dir, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.WriteTo(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != s.Size() {
		t.Errorf("wrote %d bytes; said %d", b.Len(), s.Size())
	}
	return b.Bytes()
}

func pack(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := Compress(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestABackupIsVerifiedAndExtracted(t *testing.T) {
	from := tree(t)
	b := pack(t, plain(t, from, Manifest{Version: "1"}))
	r, err := Verify(t.Context(), bytes.NewReader(b), t.TempDir())
	if err != nil || !slices.Equal(r.Blobs, []string{sum(droplet)}) || r.Version != "1" {
		t.Fatalf("got %+v, %v", r, err)
	}
	to := t.TempDir()
	if _, err := Extract(t.Context(), bytes.NewReader(b), to); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Members {
		got, err := os.ReadFile(filepath.Join(to, m.Name))
		if err != nil || sum(got) != m.SHA256 {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

// unpacked is what zstd makes of a backup; nil where it makes nothing.
func unpacked(t *testing.T, b []byte) []byte {
	t.Helper()
	r, err := zstd.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return text
}

// Wherever a backup is cut off, and whatever byte of it is another, it is
// refused, unless it unpacks to the same: some bits of zstd's mean nothing.
func TestADamagedBackupIsRefused(t *testing.T) {
	all := plain(t, tree(t), Manifest{})
	b := pack(t, all)
	step := max(len(b)/97, 1)
	for at := 0; at < len(b); at += step {
		if err := read(t.Context(), bytes.NewReader(b[:at]), visitor{}); err == nil {
			t.Errorf("cut off at %d of %d: it was not seen", at, len(b))
		}
		other := slices.Clone(b)
		other[at] ^= 0x10
		if err := read(t.Context(), bytes.NewReader(other), visitor{}); err == nil && !bytes.Equal(unpacked(t, other), all) {
			t.Errorf("byte %d of %d is another: it was not seen", at, len(b))
		}
	}
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "cut off"}, {b[:len(b)-1], "cut off"}, {[]byte("a text, and no backup at all"), "not a backup of cupola"},
		{slices.Concat(b, []byte("more")), ""}, {slices.Concat(b, pack(t, []byte("more"))), "4 bytes behind it"},
	} {
		if err := read(t.Context(), bytes.NewReader(c.b), visitor{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v; want %q", err, c.want)
		}
	}
}

// forge makes a backup of a manifest and entries, as someone may who means ill:
// all digests are right.
func forge(t *testing.T, m Manifest, entries []tar.Header, contents ...string) []byte {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, content string) {
		if h.Typeflag == 0 || h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(tar.Header{Name: manifestName}, string(text))
	for n, h := range entries {
		add(h, contents[n])
	}
	add(tar.Header{Name: endName}, endOf(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return pack(t, b.Bytes())
}

func TestAHostileBackupIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	db := []Member{{"db/cupola.db", 1, sum([]byte("d"))}, {"db/store.key", 1, sum([]byte("k"))}}
	base := []tar.Header{{Name: "db/cupola.db"}, {Name: "db/store.key"}}
	with := func(m ...Member) Manifest { return Manifest{Format: format, Members: append(slices.Clone(db), m...)} }
	evil := func(name string) Member { return Member{name, 4, sum([]byte("evil"))} }
	for name, c := range map[string]struct {
		manifest Manifest
		entries  []tar.Header
		want     string
	}{
		"a path that leads out":       {with(evil("../../etc/cron.d/evil")), []tar.Header{{Name: "../../etc/cron.d/evil"}}, "none of a backup"},
		"an absolute path":            {with(evil("/etc/evil")), []tar.Header{{Name: "/etc/evil"}}, "none of a backup"},
		"a path that leads out later": {with(evil("blobs/../../evil")), []tar.Header{{Name: "blobs/../../evil"}}, "none of a backup"},
		"a write-ahead log":           {with(evil("db/cupola.db-wal")), []tar.Header{{Name: "db/cupola.db-wal"}}, "none of a backup"},
		"a stack that leads out":      {with(evil("stacks/../fs.tar")), []tar.Header{{Name: "stacks/../fs.tar"}}, "none of a backup"},
		"a symlink":                   {with(evil("ca.pem")), []tar.Header{{Name: "ca.pem", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, "in the place of ca.pem"},
		"a hard link":                 {with(evil("ca.pem")), []tar.Header{{Name: "ca.pem", Typeflag: tar.TypeLink, Linkname: "db/store.key"}}, "in the place of ca.pem"},
		"a device":                    {with(evil("ca.pem")), []tar.Header{{Name: "ca.pem", Typeflag: tar.TypeBlock}}, "in the place of ca.pem"},
		"another name":                {with(evil("ca.pem")), []tar.Header{{Name: "ssh_host_key"}}, "in the place of ca.pem"},
		"a sparse file":               {with(evil("ca.pem")), []tar.Header{{Name: "ca.pem", PAXRecords: map[string]string{"VENDOR.x": "y"}}}, "in the place of ca.pem"},
		"a member twice":              {with(evil("ca.pem"), evil("ca.pem")), []tar.Header{{Name: "ca.pem"}, {Name: "ca.pem"}}, "there twice"},
		"a member too few":            {with(evil("ca.pem")), nil, "in the place of ca.pem"},
		"a member too many":           {with(), []tar.Header{{Name: "ca.pem"}}, "in the place of manifest.sha256"},
		"another content":             {with(Member{"ca.pem", 4, sum([]byte("good"))}), []tar.Header{{Name: "ca.pem"}}, "its SHA-256 is"},
		"another size":                {with(Member{"ca.pem", 5, sum([]byte("evil"))}), []tar.Header{{Name: "ca.pem"}}, "the manifest says 5"},
		"a size below nothing":        {with(Member{"ca.pem", -1, sum(nil)}), []tar.Header{{Name: "ca.pem"}}, "-1 bytes"},
		"a size beyond all":           {with(Member{"ca.pem", 1 << 62, sum(nil)}), []tar.Header{{Name: "ca.pem"}}, "bytes"},
		"a blob of another name":      {with(evil(BlobName(sum([]byte("good"))))), []tar.Header{{Name: BlobName(sum([]byte("good")))}}, "not what its name says"},
		"no database":                 {Manifest{Format: format}, nil, "no db/cupola.db"},
		"a newer format":              {Manifest{Format: format + 1, Version: "9"}, nil, "newer cupola (9"},
		"no format":                   {Manifest{}, nil, "no format"},
	} {
		t.Run(name, func(t *testing.T) {
			entries, contents := append(slices.Clone(base), c.entries...), []string{"d", "k", "evil", "evil"}
			b := forge(t, c.manifest, entries, contents...)
			temp, to := t.TempDir(), t.TempDir()
			if _, err := Verify(t.Context(), bytes.NewReader(b), temp); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
			if _, err := Extract(t.Context(), bytes.NewReader(b), to); err == nil {
				t.Error("it was extracted")
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// What is small on disk and endless when it is read is refused, long before it
// has been read.
func TestABombIsRefused(t *testing.T) {
	const size = 1 << 40
	m := Manifest{Format: format, Members: []Member{{"db/cupola.db", size, sum(nil)}, {"db/store.key", 1, sum(nil)}}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	go func() {
		z, _ := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest))
		tw := tar.NewWriter(z)
		err := errors.Join(writeMember(tw, manifestName, int64(len(text)), bytes.NewReader(text)), writeMember(tw, "db/cupola.db", size, zeros{}))
		w.CloseWithError(err)
	}()
	err = read(t.Context(), r, visitor{})
	r.CloseWithError(errors.New("enough"))
	if err == nil || !strings.Contains(err.Error(), "250 times its size") {
		t.Errorf("got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A backup that is whole, but of which a part was left out when it was made, is
// refused too.
func TestVerifyMissesWhatRowsName(t *testing.T) {
	remove := func(pattern string) func(string) {
		return func(dir string) {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, f := range found {
				os.Remove(f)
			}
		}
	}
	for name, c := range map[string]struct {
		harm func(dir string)
		m    Manifest
		want string
	}{
		"a blob":            {remove("blobs/*/*"), Manifest{}, "names the blob " + sum(droplet)},
		"an image":          {remove("images/*"), Manifest{}, "which is not there"},
		"a layer":           {remove("rootfs/oci/*"), Manifest{}, "lacks the layer"},
		"a stack's files":   {remove("stacks/*/fs.tar"), Manifest{}, "lacks its files"},
		"another schema":    {func(string) {}, Manifest{Schema: 1}, "the manifest says 1"},
		"another's key":     {func(dir string) { os.WriteFile(filepath.Join(dir, "db/store.key"), make([]byte, 32), 0o600) }, Manifest{Schema: 1}, "store.key"},
		"a stack's renamed": {func(dir string) { os.Rename(filepath.Join(dir, "stacks/mine"), filepath.Join(dir, "stacks/other")) }, Manifest{}, `of the stack "mine"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t)
			c.harm(dir)
			b := pack(t, plain(t, dir, c.m))
			if _, err := Verify(t.Context(), bytes.NewReader(b), t.TempDir()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
	// An image that is only named, and said to be, is none that is missing.
	dir := tree(t)
	remove("images/*")(dir)
	b := pack(t, plain(t, dir, Manifest{Left: []Left{{Kind: "image", Name: "docker://reg.io/a@sha256:" + sum([]byte("a manifest"))}}}))
	if _, err := Verify(t.Context(), bytes.NewReader(b), t.TempDir()); err != nil {
		t.Error(err)
	}
}

// What is damaged where the backup is made does not get into one.
func TestADamagedFileIsNotBackedUp(t *testing.T) {
	dir := tree(t)
	if err := os.WriteFile(filepath.Join(dir, BlobName(sum(droplet))), []byte("The bits of a droplet"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewSource(t.Context(), dir, Manifest{Schema: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WriteTo(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "damaged on this machine") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WriteTo(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want it canceled", err)
	}
}

// Nothing that is read makes the reader crash, nor write elsewhere, nor pass
// what is not whole.
func FuzzRead(f *testing.F) {
	good := plain(f, tree(f), Manifest{})
	f.Add(good[:4096])
	f.Add(good[:len(good)/2])
	var small bytes.Buffer
	w := tar.NewWriter(&small)
	text := fmt.Appendf(nil, `{"Format":1,"Members":[{"Name":"db/cupola.db","Size":1,"SHA256":%q},{"Name":"db/store.key","Size":1,"SHA256":%q}]}`, sum([]byte("d")), sum([]byte("k")))
	for _, m := range [][2]string{{manifestName, string(text)}, {"db/cupola.db", "d"}, {"db/store.key", "k"}, {endName, endOf(text)}} {
		if err := writeMember(w, m[0], int64(len(m[1])), strings.NewReader(m[1])); err != nil {
			f.Fatal(err)
		}
	}
	w.Close()
	f.Add(small.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		var got []Member
		var manifest Manifest
		err := readTar(bytes.NewReader(b), visitor{Manifest: func(m Manifest) error { manifest = m; return nil }, Member: func(m Member, r io.Reader) error {
			content, err := io.ReadAll(r)
			if err == nil && sum(content) == m.SHA256 && int64(len(content)) == m.Size {
				got = append(got, m)
			}
			return err
		}})
		if err == nil && !slices.Equal(got, manifest.Members) {
			t.Errorf("passed %v of %v", got, manifest.Members)
		}
		for _, m := range got {
			if !filepath.IsLocal(m.Name) || m.Name == "db/cupola.db-wal" {
				t.Errorf("took %q", m.Name)
			}
		}
	})
}
