package kube

import (
	"strings"
	"testing"

	"cupola/server/bosh"
	"cupola/server/bosh/bpm"
)

// TestSecretsOfProcessesAreHidden holds that no secret is in clear in what is
// rendered without secrets, also those that bpm.yml writes into a process.
func TestSecretsOfProcessesAreHidden(t *testing.T) {
	secrets := []string{"s3cret", "-----BEGIN KEY-----\nx\n", "of-the-user", "of-a-link", "s3cret-and-more"}
	in := resolved(t, example(t))
	in.Foreign = secrets[3:4]
	in.Variables = []Variable{
		{Name: "p", Fields: map[string]string{"password": secrets[0]}}, {Name: "c", Fields: map[string]string{"private_key": secrets[1], "certificate": "public"}},
		{Name: "u", Implicit: true, Fields: map[string]string{"value": secrets[2]}}, {Name: "q", Fields: map[string]string{"password": secrets[4]}},
	}
	p := bosh.Process{Container: "nats-x", Process: bpm.Process{Name: "x", Executable: "/x", Env: map[string]string{"CERT": "public", "ALL": strings.Join(secrets, ",")}}}
	for _, s := range secrets {
		p.Args = append(p.Args, "--password="+s)
	}
	in.Groups[0].Jobs[0].Processes = append(in.Groups[0].Jobs[0].Processes, p)
	text := func(o Options) string {
		all, _, err := Render(in, o)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := Write(&b, all); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	hidden, shown := text(Options{}), text(Options{WithSecrets: true})
	for _, s := range secrets {
		first, _, _ := strings.Cut(s, "\n")
		if strings.Contains(hidden, first) {
			t.Errorf("%q is in clear", first)
		}
		if !strings.Contains(shown, first) {
			t.Errorf("%q is not there with secrets", first)
		}
	}
	if !strings.Contains(hidden, "value: public") || !strings.Contains(hidden, "--password=REPLACE\n") {
		t.Errorf("got %s; want placeholders, and a certificate as it is", hidden)
	}
}

// TestLiteralCredentialsAreHidden holds that credentials in clear in a manifest
// or in bpm.yml are hidden, and paths that contain such a word are not.
func TestLiteralCredentialsAreHidden(t *testing.T) {
	in := resolved(t, example(t))
	in.Literal = []string{"postgres", "li7eral"}
	p := bosh.Process{Container: "nats-x", Process: bpm.Process{
		Name: "x", Executable: "/var/vcap/packages/postgres/bin/x",
		Args: []string{"--pass=postgres", "--token", "of-bpm", "-c", "x li7eral; SECRET=of-script y", "nats://u:of-url@h"},
		Env:  map[string]string{"DB_PASSWORD": "of-env", "KEY_FILE": "/var/vcap/jobs/x/key.pem", "HOME": "/home/postgres"},
	}}
	in.Groups[0].Jobs[0].Processes = append(in.Groups[0].Jobs[0].Processes, p)
	all, _, err := Render(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Write(&b, all); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"pass=postgres", "li7eral", "of-bpm", "of-script", "of-url", "of-env"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%q is in clear", secret)
		}
	}
	for _, text := range []string{"/var/vcap/packages/postgres/bin/x", "/var/vcap/jobs/x/key.pem", "/home/postgres", "nats://u:REPLACE@h"} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("%q is hidden", text)
		}
	}
}
