package reference

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

var someDigest = "sha256:" + strings.Repeat("0a", 32)

func TestParse(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"docker://busybox":                                   "docker://docker.io/library/busybox:latest",
		"docker:///busybox":                                  "docker://docker.io/library/busybox:latest",
		"docker:///foo/bar#tag":                              "docker://docker.io/foo/bar:tag",
		"docker://library/busybox":                           "docker://docker.io/library/busybox:latest",
		"docker://cloudfoundry/cflinuxfs4:1.268.0":           "docker://docker.io/cloudfoundry/cflinuxfs4:1.268.0",
		"docker://docker.io/cloudfoundry/cflinuxfs4:1.268.0": "docker://docker.io/cloudfoundry/cflinuxfs4:1.268.0",
		"docker://index.docker.io/busybox":                   "docker://docker.io/library/busybox:latest",
		"docker://registry-1.docker.io/library/busybox":      "docker://docker.io/library/busybox:latest",
		"docker:///a.b/c":                                    "docker://docker.io/a.b/c:latest",
		"docker://localhost/a":                               "docker://localhost/a:latest",
		"docker://localhost:5000/a/b/c:v1":                   "docker://localhost:5000/a/b/c:v1",
		"docker://[::1]:5000/a":                              "docker://[::1]:5000/a:latest",
		"docker://127.0.0.1:5000/a__b/c-d--e.f":              "docker://127.0.0.1:5000/a__b/c-d--e.f:latest",
		"docker://Reg.Example.COM/a#V_1.x":                   "docker://reg.example.com/a:V_1.x",
		"docker://reg.example.com/a@" + someDigest:           "docker://reg.example.com/a@" + someDigest,
		"docker://reg.example.com:1/a/b:t@" + someDigest:     "docker://reg.example.com:1/a/b:t@" + someDigest,
		"docker://host:80/a":                                 "docker://host:80/a:latest",
		"docker://myregistry/a":                              "docker://docker.io/myregistry/a:latest",
		"oci:/srv/image":                                     "oci:/srv/image",
		"oci:///srv//image/":                                 "oci:/srv/image",
		"preloaded:cflinuxfs4":                               "preloaded:cflinuxfs4",
		"preloaded://cflinuxfs2":                             "preloaded:cflinuxfs2",
		"precached:cflinuxfs4":                               "preloaded:cflinuxfs4",
		"preloaded://cflinuxfs4":                             "preloaded:cflinuxfs4",
		"precached://cflinuxfs4":                             "preloaded:cflinuxfs4",
	} {
		r, err := Parse(s)
		if err != nil || r.String() != want {
			t.Errorf("%s: got %q, %v; want %q", s, r, err, want)
			continue
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%s: got %+v, %v the second time; want %+v", s, again, err, r)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                       "no scheme",
		"cflinuxfs4":             "no scheme",
		"https://reg.io/a":       "scheme is none of",
		"docker:busybox":         "write docker://",
		"docker:/busybox":        "write docker://",
		"docker://":              "names no image",
		"docker:///":             "names no image",
		"docker://reg.io/":       "the name \"\"",
		"docker://reg.io/a/":     "must be lower-case letters",
		"docker://reg.io//a":     "must be lower-case letters",
		"docker://reg.io/a/../b": "must be lower-case letters",
		"docker://reg.io/A":      "must be lower-case letters",
		"docker://reg.io/a b":    "must be lower-case letters",
		"docker://reg.io/a%2fb":  "must be lower-case letters",
		"docker://reg.io/a_-b":   "must be lower-case letters",
		"docker://reg.io/" + strings.Repeat("a", 256):      "longer than 255",
		"docker://reg.io/a:":                               "tag is empty",
		"docker://reg.io/a#":                               "tag is empty",
		"docker://reg.io/a:-x":                             "it must be up to 128 letters",
		"docker://reg.io/a:x/y":                            "the tag",
		"docker://reg.io/a:" + strings.Repeat("x", 129):    "the tag",
		"docker://reg.io/a:b#c":                            "two tags",
		"docker://reg.io/a?x=y":                            "query",
		"docker://reg.io/a@":                               "digest is empty",
		"docker://reg.io/a@sha256:abc":                     "the digest",
		"docker://reg.io/a@sha512:" + someDigest[7:]:       "the digest",
		"docker://reg.io/a@" + strings.ToUpper(someDigest): "the digest",
		"docker://user:secret@reg.io/a":                    "credentials",
		"docker://reg.io:99999/a":                          "not a valid port",
		"docker://reg.io:0/a":                              "not a valid port",
		"docker://reg.io:x/a":                              "not a valid registry host",
		"docker://-reg.io/a":                               "not a valid registry host",
		"docker://../a":                                    "not a valid registry host",
		"docker://[::1/a":                                  "not a valid registry host",
		"oci:":                                             "absolute",
		"oci:image":                                        "absolute",
		"oci:/":                                            "absolute",
		"preloaded:":                                       "not a valid stack name",
		"preloaded:../x":                                   "not a valid stack name",
		"preloaded://":                                     "not a valid stack name",
		"preloaded:///x":                                   "not a valid stack name",
		"docker://" + strings.Repeat("a/", 4000):           "too long",
	} {
		if r, err := Parse(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %q, %v; want %q", s, r, err, want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password is in %v", s, err)
		}
	}
}

func TestWithDigest(t *testing.T) {
	t.Parallel()
	r, err := Parse("docker://index.docker.io/a/b:t")
	if err != nil || r.Host != "docker.io" {
		t.Errorf("got %+v, %v; want Docker Hub by one name", r, err)
	}
	pinned := r.WithDigest(someDigest)
	if got, want := pinned.String(), "docker://docker.io/a/b:t@"+someDigest; got != want || pinned.TagOrDigest() != someDigest {
		t.Errorf("got %q; want %q", got, want)
	}
	if got := pinned.WithoutDigest(); got != r || got.TagOrDigest() != "t" {
		t.Errorf("got %+v; want %+v", got, r)
	}
}

// FuzzParse holds that what is accepted can be written down and read back, and lies within one registry.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"docker://busybox", "docker:///foo/bar#tag", "docker://[::1]:5000/a:t@" + someDigest, "docker://u:p@h.io/a", "oci:/a/../b", "precached:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q: got %+v, %v read back; want %+v", s, again, err, r)
		}
		if r.Scheme != SchemeDocker {
			return
		}
		if _, err := name.NewRepository(r.Repo()); err != nil || strings.Contains(r.Repository, "..") {
			t.Errorf("%q: got %+v, %v", s, r, err)
		}
	})
}
