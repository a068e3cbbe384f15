package redact

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestNamed(t *testing.T) {
	for _, name := range []string{
		"password", "admin_password", "adminPassword", "DB_PASSWORD", "--password", "auth.token", "client_secret", "private_key", "API-KEY",
		"encryption_keys", "credentials", "Authorization", "password2",
	} {
		if !Named(name) {
			t.Errorf("%s is not a credential", name)
		}
	}
	for _, name := range []string{"", "key", "public_key", "keys", "token_ttl", "password_policy", "secret_name", "access_key_id", "TOKEN_FILE", "user", "monkey", "passwordless", "keyspace"} {
		if Named(name) {
			t.Errorf("%s is a credential", name)
		}
	}
}

func TestArgs(t *testing.T) {
	for in, want := range map[string]string{
		"--password=s3cret|--user=u":                    "--password=X|--user=u",
		"--password|s3cret|next":                        "--password|X|next",
		"--password|--other":                            "--password|--other",
		"-c|run --api-key='a b' --port=1":               "-c|run --api-key=X --port=1",
		"-c|DB_PASSWORD=s3cret exec x":                  "-c|DB_PASSWORD=X exec x",
		"-c|exec x --token=$TOKEN":                      "-c|exec x --token=$TOKEN",
		"--token=((token))":                             "--token=((token))",
		"--secret=$2a$10$abc":                           "--secret=X",
		"--tls-key=/var/vcap/jobs/x/config/key.pem":     "--tls-key=/var/vcap/jobs/x/config/key.pem",
		"nats://u:s3cret@10.0.0.1:4222":                 "nats://u:X@10.0.0.1:4222",
		"--urls=nats://a:b@1,nats://c:d@2":              "--urls=nats://a:X@1,nats://c:X@2",
		"--listen=http://localhost:80/a@b|--token=true": "--listen=http://localhost:80/a@b|--token=true",
	} {
		if got := strings.Join(Args(strings.Split(in, "|"), "X"), "|"); got != want {
			t.Errorf("%s: got %s; want %s", in, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	got := Texts(map[string]any{"user": "u", "password": "p", "tokens": []any{"a", 1, map[string]any{"x": "b"}}, "token": "((v))", "secret": ""})
	slices.Sort(got)
	if want := []string{"a", "b", "p"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

const secretive = `name: d # a name
instance_groups:
  - name: g
    properties:
      password: s3cret-1
      user: u
      "token": "s3cret-2"
      private_key: |
        s3cret-3

        s3cret-4
      flow: {user: w, secret: s3cret-5}
      credentials:
        - s3cret-6
        - x: s3cret-7
      api_key: &anchor s3cret-8
      tls_key: ((tls.private_key))
      envs:
        - {name: DB_PASSWORD, value: s3cret-11}
      client_secret: >-
        s3cret-9
        s3cret-10
`

func TestManifest(t *testing.T) {
	text, err := Manifest(secretive)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range strings.SplitSeq(text, "\n") {
		lines = append(lines, Shown(l))
	}
	shown := strings.Join(lines, "\n")
	want := `name: d # a name
instance_groups:
  - name: g
    properties:
      password: <redacted>
      user: u
      "token": <redacted>
      private_key: <redacted>
        <redacted>

        <redacted>
      flow: {user: w, secret: <redacted>
      credentials:
        - <redacted>
        - x: <redacted>
      api_key: <redacted>
      tls_key: ((tls.private_key))
      envs:
        - {name: DB_PASSWORD, value: <redacted>
      client_secret: <redacted>
        <redacted>
        <redacted>
`
	if shown != want {
		t.Errorf("got\n%s\nwant\n%s", shown, want)
	}
	if other, _ := Manifest(strings.Replace(secretive, "s3cret-3", "s3cret-0", 1)); other == text {
		t.Error("two credentials make equal texts: a diff misses the change")
	}
}

// FuzzManifest holds that each line stays one, and that no block value below
// "password" is shown.
func FuzzManifest(f *testing.F) {
	for _, s := range []string{"s3cret", "a\nb\n\n c", "'", "&a b", "((x)) y", "\t", "é: x", "- s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		in, err := yaml.Marshal(map[string]any{"a": []any{map[string]any{"password": "s3cret" + secret, "z": 1}}, "b": 2})
		if err != nil {
			t.Skip()
		}
		text, err := Manifest(string(in))
		if err != nil {
			t.Fatal(err)
		}
		was, is := strings.Split(string(in), "\n"), strings.Split(text, "\n")
		if len(was) != len(is) {
			t.Fatalf("%d lines became %d", len(was), len(is))
		}
		for _, l := range is {
			if strings.Contains(Shown(l), "s3cret") {
				t.Errorf("%q shows a credential", l)
			}
		}
	})
}

// TestText hides a whole credential, also where another one begins it, and no word that a short one is in.
func TestText(t *testing.T) {
	if got, want := Text("a hunter22, a hunter2", []string{"a", "hunter2", "hunter22"}), "a <redacted>, a <redacted>"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}
