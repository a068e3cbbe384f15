package data

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"cupola/test/e2e"
)

// TestObjectStore uses the built-in service s3, whose image a mirror has, and memcached of Debian, as tenants do.
func TestObjectStore(t *testing.T) {
	t.Parallel()
	r := e2e.StartRegistry(t)
	r.Public = true
	server := e2e.Program(t, filepath.Join("testdata", "versitygw"), "github.com/versity/versitygw/cmd/versitygw")
	r.PushTo(t, "versity/versitygw:v1.8.0", v1.Config{Entrypoint: []string{"/usr/local/bin/docker-entrypoint.sh"}},
		e2e.LayerOf(t, append(programsOfMachine(t, "sh", "head", "tail", "tar", "rm", "mv", "mkdir"), layerFile(t, server, "usr/local/bin/versitygw"))...))
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "s3,memcached", "--mirrors", "docker.io="+r.Host)
	s3IsPrepared(d)
	s3IsCarried(d)
	store := d.DataInstance("s3", "photos")
	pushClient(d, store)
	key := s3Key(d, store, "key")
	answers(d, "s3", "put first kept", "done")
	answers(d, "s3", "get first", "kept")
	s3KeysAreApart(d, store, key)
	s3Outlives(d, store, key)
	s3IsRestored(d, key)
	var about struct{ Version string }
	if d.API("GET", "/v1/service_instances/"+store+"/server", nil, &about); about.Version != "s3 1.8.0" {
		t.Errorf("got the version %q", about.Version)
	}
	s3IsCut(d, store, key)
	if err := d.Change("DELETE", "/v3/service_instances/"+d.First("/v3/service_instances?names=photos"), nil); err != nil {
		t.Fatal(err)
	}
	memcachedIsUsed(d)
}

// s3IsPrepared wants to be told how s3 is prepared, and prepares it while the daemon runs.
func s3IsPrepared(d *e2e.Daemon) {
	d.T.Helper()
	const command = "sudo cupola broker prepare --services s3"
	if _, err := d.MakeDataInstance("s3", "early"); err == nil || !strings.Contains(err.Error(), command) {
		d.T.Errorf("got %v; want %q", err, command)
	}
	if err := d.Change("DELETE", "/v3/service_instances/"+d.First("/v3/service_instances?names=early"), nil); err != nil {
		d.T.Fatal(err)
	}
	if out, _ := d.Run("doctor", "--data-dir", d.Dir); !strings.Contains(out, "not prepared: s3, memcached") {
		d.T.Errorf("doctor: got %s; want the services that are not prepared", out)
	}
	out, err := d.Run("broker", "prepare", "--services", "s3", "--data-dir", d.Dir)
	if err != nil || !strings.Contains(out, "Made the stack services-s3: ") || !strings.Contains(out, "Prepared: s3\n") {
		d.T.Fatalf("broker prepare: %v\n%s", err, out)
	}
	d.WaitFor("/v3/service_offerings?names=s3")
	var stacks struct{ Resources []struct{ Name string } }
	d.API("GET", "/v3/stacks?names=services-s3", nil, &stacks)
	if len(stacks.Resources) != 0 {
		d.T.Error("apps may choose the stack of a service; want it hidden")
	}
}

// s3IsCarried takes the prepared service to the data directory of a machine without network.
func s3IsCarried(d *e2e.Daemon) {
	d.T.Helper()
	image, other := filepath.Join(d.T.TempDir(), "s3-image"), d.T.TempDir()
	for _, args := range [][]string{{"stack", "export", "services-s3", image, "--data-dir", d.Dir}, {"stack", "pull", "oci:" + image, "--name", "services-s3", "--data-dir", other}} {
		if out, err := d.Run(args...); err != nil {
			d.T.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	out, err := d.Run("broker", "status", "--json", "--data-dir", other)
	var status struct {
		Services []struct {
			Name     string
			Prepared bool
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &status)
	}
	if err != nil {
		d.T.Fatalf("broker status: %v\n%s", err, out)
	}
	for _, s := range status.Services {
		if want := slices.Contains([]string{"s3", "files"}, s.Name); s.Prepared != want {
			d.T.Errorf("%s is prepared there: %v; want %v", s.Name, s.Prepared, want)
		}
	}
}

// s3Credentials are those of a binding.
type s3Credentials struct {
	ID     string `json:"access_key_id"`
	Secret string `json:"secret_access_key"`
}

// s3Key makes a service key.
func s3Key(d *e2e.Daemon, instance, name string) s3Credentials {
	d.T.Helper()
	c := storeKey(d, instance, name)
	return s3Credentials{c["access_key_id"].(string), c["secret_access_key"].(string)}
}

// s3Client is a client of this machine's.
func s3Client(d *e2e.Daemon, instance string, c s3Credentials) *minio.Client {
	d.T.Helper()
	client, err := minio.New(net.JoinHostPort(dataAddress(d, instance), "7070"), &minio.Options{Creds: credentials.NewStaticV4(c.ID, c.Secret, ""), MaxRetries: 1})
	if err != nil {
		d.T.Fatal(err)
	}
	return client
}

// s3Get reads an object of the bucket photos.
func s3Get(d *e2e.Daemon, client *minio.Client, key string) (string, error) {
	d.T.Helper()
	ctx, cancel := context.WithTimeout(d.T.Context(), 10*time.Second)
	defer cancel()
	o, err := client.GetObject(ctx, "photos", key, minio.GetObjectOptions{})
	if err != nil {
		return "", err
	}
	defer o.Close()
	content, err := io.ReadAll(o)
	return string(content), err
}

// s3Has wants an object, within a minute.
func s3Has(d *e2e.Daemon, instance string, c s3Credentials, key, want string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if got, err := s3Get(d, s3Client(d, instance, c), key); err != nil || got != want {
			return fmt.Sprintf("%s: got %q, %v; want %q", key, got, err, want)
		}
		return ""
	})
}

// s3Refuses wants a key refused.
func s3Refuses(d *e2e.Daemon, instance string, c s3Credentials) {
	d.T.Helper()
	got, err := s3Get(d, s3Client(d, instance, c), "first")
	if code := minio.ToErrorResponse(err).Code; code != "InvalidAccessKeyId" && code != "SignatureDoesNotMatch" {
		d.T.Errorf("got %q, %v; want the key refused", got, err)
	}
}

// s3KeysAreApart wants keys that see the instance's objects, but are no others' and cannot make users.
func s3KeysAreApart(d *e2e.Daemon, store string, key s3Credentials) {
	d.T.Helper()
	s3Has(d, store, key, "first", "kept")
	second := s3Key(d, store, "second")
	if second.ID == key.ID || second.Secret == key.Secret {
		d.T.Errorf("got %v twice; want a key for each binding", key.ID)
	}
	s3Has(d, store, second, "first", "kept")
	s3Refuses(d, store, s3Credentials{key.ID, second.Secret})
	if conn, err := net.DialTimeout("tcp", net.JoinHostPort(dataAddress(d, store), "7071"), 5*time.Second); err == nil {
		conn.Close()
		d.T.Error("the port of the server's administration is open; want it in the container alone")
	}
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+d.First("/v3/service_credential_bindings?names=second"), nil); err != nil {
		d.T.Fatal(err)
	}
	s3Refuses(d, store, second)
	s3Has(d, store, key, "first", "kept")
}

// s3Outlives kills the server and the daemon while objects are put, and wants each one that was acknowledged.
func s3Outlives(d *e2e.Daemon, store string, key s3Credentials) {
	d.T.Helper()
	client := s3Client(d, store, key)
	ctx, stop := context.WithCancel(d.T.Context())
	acknowledged := make(chan []string)
	go func() {
		var names []string
		for n := 0; ctx.Err() == nil; n++ {
			name := fmt.Sprintf("n%d", n)
			once, cancel := context.WithTimeout(ctx, 5*time.Second)
			if _, err := client.PutObject(once, "photos", name, strings.NewReader(name), int64(len(name)), minio.PutObjectOptions{}); err == nil {
				names = append(names, name)
			}
			cancel()
		}
		acknowledged <- names
	}()
	const mark = "versitygw\x00posix"
	time.Sleep(time.Second)
	killDatabase(d, mark)
	answers(d, "s3", "get first", "kept")
	killed(d)
	answers(d, "s3", "get first", "kept")
	stop()
	names := <-acknowledged
	if len(names) < 10 {
		d.T.Errorf("only %d objects were put", len(names))
	}
	client = s3Client(d, store, key) // where the server is now; a fast machine puts thousands
	for _, name := range names {
		if got, err := s3Get(d, client, name); err != nil || got != name {
			d.T.Errorf("%s: got %q, %v; want what was acknowledged", name, got, err)
		}
	}
	d.T.Logf("all of %d acknowledged objects are there", len(names))
}

// s3IsRestored restores objects: in place, and into others, whose users are not those of the first.
func s3IsRestored(d *e2e.Daemon, key s3Credentials) {
	d.T.Helper()
	backup := backUp(d, "photos")
	answers(d, "s3", "put first changed", "done")
	answers(d, "s3", "put later unwanted", "done")
	services(d, "restore", "photos", backup, "--force")
	answers(d, "s3", "get first", "kept")
	if got, err := try(d, "s3", "get later"); err == nil {
		d.T.Errorf("got %q; want no object that the backup lacks", got)
	}
	services(d, "restore", "photos", backup, "--new", "copied")
	file := filepath.Join(d.T.TempDir(), "all.backup")
	if out, err := d.Run("backup", file, "--data-dir", d.Dir); err != nil {
		d.T.Fatalf("backup: %v\n%s", err, out)
	}
	services(d, "restore", "photos", "--from", file, "--new", "old", "--data-dir", d.Dir)
	for _, name := range []string{"copied", "old"} {
		guid := d.First("/v3/service_instances?names=" + name)
		s3Has(d, guid, s3Key(d, guid, "of-"+name), "first", "kept")
		s3Refuses(d, guid, key)
		if err := d.Change("DELETE", "/v3/service_instances/"+guid, nil); err != nil {
			d.T.Fatal(err)
		}
	}
}

// s3IsCut unbinds the app: it reaches the store no longer, and its key is refused.
func s3IsCut(d *e2e.Daemon, store string, key s3Credentials) {
	d.T.Helper()
	binding := d.First("/v3/service_credential_bindings?type=app&service_instance_guids=" + store)
	var details struct{ Credentials s3Credentials }
	d.API("GET", "/v3/service_credential_bindings/"+binding+"/details", nil, &details)
	s3Has(d, store, details.Credentials, "first", "kept")
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.T.Fatal(err)
	}
	if got, err := try(d, "s3", "get first"); err == nil {
		d.T.Errorf("got %q; want an unbound app refused", got)
	}
	s3Refuses(d, store, details.Credentials)
	s3Has(d, store, key, "first", "kept")
}

// memcachedIsUsed runs memcached on a stack that an operator built of Debian's package, instead of the image.
func memcachedIsUsed(d *e2e.Daemon) {
	d.T.Helper()
	if out, err := d.Run("stack", "build", "debian12", "--name", "services-memcached", "--package", "memcached", "--data-dir", d.Dir); err != nil {
		d.T.Fatalf("stack build: %v\n%s", err, out)
	}
	cache := d.DataInstance("memcached", "cache")
	d.DataBinding("client", cache)
	d.RestartApp("client")
	answers(d, "memcached", "set a one", "STORED")
	answers(d, "memcached", "get a", "one")
	killDatabase(d, "memcached\x00-m")
	answers(d, "memcached", "get a", "") // it keeps nothing
	if err := d.Change("DELETE", "/v3/service_instances/"+cache, nil); err != nil {
		d.T.Fatal(err)
	}
}
