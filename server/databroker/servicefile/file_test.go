package servicefile

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const whole = `name: search
description: a search engine
tags: [search]
version: 1.2.3
image: registry.example.com/search:1
args: [serve, --port, ((port))]
env:
  KEY: ((key))
  SIZE: ((memory_mb))M
secrets: [key]
ports: [7700, 7701]
volume: /data
health: {port: 7701, path: /health}
plans:
- {name: tiny, memory: 64M, disk: 128M}
credentials:
  uri: http://((username)):((password))@((host)):((port))
  port: ((port))
  more: {list: [1, true, ((key))]}
bind: add "$USERNAME" "$PASSWORD"
unbind: delete "$USERNAME"
backup: tar -C /data -cf - .
restore: tar -C /data -xf -
`

func TestWholeFile(t *testing.T) {
	f, err := Parse("a.yml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if f.Image != "docker://registry.example.com/search:1" || f.DisplayName != "search" || f.HealthPort() != 7701 || f.Plans[0].Description != "64 MB of memory, 128 MB of disk" {
		t.Errorf("got %+v", f)
	}
	vars := Vars{"host": "h", "port": "7700", "username": "u", "password": "p", "key": "k", "memory_mb": "64"}
	got := vars.ExpandValue(f.Credentials)
	want := map[string]any{"uri": "http://u:p@h:7700", "port": 7700, "more": map[string]any{"list": []any{1, true, "k"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"serve", "--port", "7700"}, vars.ExpandAll(f.Args)); diff != "" {
		t.Error(diff)
	}
}

// TestFaults wants the line and the field of each mistake.
func TestFaults(t *testing.T) {
	change := func(from, to string) string {
		if !strings.Contains(whole, from) {
			t.Fatalf("%q is not in the file", from)
		}
		return strings.Replace(whole, from, to, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"", "a.yml: the file is empty"},
		{"- a", "a.yml:1: give fields"},
		{"name: [", "a.yml:1: did not find expected node content"},
		{"\xff", "a.yml: not a text in UTF-8"},
		{strings.Repeat("#", maxFile+1), "a.yml: larger than 64 KB"},
		{whole + "---\nname: b\n", "a.yml: give one document"},
		{change("tags: [search]", "tag: [search]"), `a.yml:3: unknown field "tag"`},
		{change("tags: [search]", "tags: &a [search]"), "a.yml:3: no aliases"},
		{change("tags: [search]", "tags: !!binary aGk="), "a.yml:3: no aliases"},
		{change("  more: {", "  deep: "+strings.Repeat("[", 20)+strings.Repeat("]", 20)+"\n  more: {"), "a.yml:19: no aliases, no tags, and at most 10 levels"},
		{change("name: search", "name: ../search"), `a.yml:1: name: invalid name "../search"`},
		{change("name: search", ""), `a.yml:1: name: invalid name ""`},
		{change("name: search", "name: search\nname: b"), `a.yml:2: mapping key "name" already defined at line 1`},
		{change("description: a search engine", "description: |\n  a\n  b"), "a.yml:2: description: give one line"},
		{change("1.2.3", "1.2"), `a.yml:4: version: invalid version "1.2": give three numbers`},
		{change("image: registry.example.com/search:1", "image: docker://a b"), "a.yml:5: image: image reference"},
		{change("image: registry.example.com/search:1", "image: preloaded:search"), "a.yml:1: command: is missing"},
		{change("image: registry.example.com/search:1", "image: oci:/images/search"), "a.yml:5: image: make a stack of it"},
		{change("image: registry.example.com/search:1", "registry: {username: a}"), "a.yml:1: image: is missing"},
		{change("((key))\n", "((kye))\n"), "a.yml:8: env.KEY: unknown ((kye)): give one of host, port"},
		{change("((key))\n", "((password))\n"), "a.yml:8: env.KEY: ((password)) is only known in credentials"},
		{change("  KEY", "  A-B"), `a.yml:8: env: invalid name "A-B"`},
		{change("secrets: [key]", "secrets: [key, host]"), `a.yml:10: secrets.1: invalid name "host"`},
		{change("7700, 7701]", "7700, 70000]"), "a.yml:11: cannot unmarshal !!int `70000`"},
		{change("7700, 7701]", "7700, 7700]"), "a.yml:11: ports.1: invalid port 7700"},
		{change("volume: /data", "volume: /data/../etc"), `a.yml:12: volume: invalid directory "/data/../etc"`},
		{change("volume: /data", "volume: /proc/1"), "a.yml:12: volume"},
		{change("port: 7701, path", "port: 80, path"), "a.yml:13: health.port: invalid port 80"},
		{change("memory: 64M", "memory: 64"), `a.yml:15: invalid size "64"`},
		{change("disk: 128M", "disk: 1K"), `a.yml:15: invalid size "1K"`},
		{change("name: tiny", "name: a-b"), `a.yml:15: plans.0.name: invalid name "a-b"`},
		{change("{list: [1, true", "{list: [1, .inf"), "a.yml:19: credentials.more.list.1: is not a number of JSON"},
		{change("{list: [1, true", "{list: [1, {1: 2}"), "a.yml:19: credentials.more.list.1: give a text"},
		{change(`bind: add "$USERNAME" "$PASSWORD"`, ""), "a.yml:17: credentials.uri: ((username)) is only known"},
		{change(`unbind: delete "$USERNAME"`, ""), "a.yml:20: bind: give unbind, too"},
		{change("backup: tar -C /data -cf - .", ""), "a.yml:23: restore: give backup, too"},
	} {
		if _, err := Parse("a.yml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v; want %q of\n%s", err, c.want, short(c.text))
		}
	}
}

// TestOnlyFilesAreRead reads neither devices nor pipes, which might never end.
func TestOnlyFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/zero"} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if files, err := Find(dir); err != nil || len(files) != 1 || files[0] != pipe {
		t.Errorf("got %v, %v; want the file that ends in .yml", files, err)
	}
}

// FuzzParse wants no panic, and of a file that is accepted, that it can be kept in the database and
// offered.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("name: a\ndescription: b\nversion: 1.0.0\nimage: a\nports: [1]\ncredentials: {a: b}\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("a.yml", text)
		if err != nil {
			return
		}
		vars := Vars{"host": "h", "port": "1"}
		if kept, err := json.Marshal(file); err != nil {
			t.Fatal(err)
		} else if err := json.Unmarshal(kept, &File{}); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(vars.ExpandValue(file.Credentials)); err != nil {
			t.Fatal(err)
		}
		if p := file.HealthPort(); p == 0 || len(file.Plans) == 0 || file.Plans[0].Memory <= 0 || file.Plans[0].Memory > math.MaxInt64/2 {
			t.Errorf("accepted %+v", file)
		}
	})
}
