package launch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var wordsEnv = []string{"PORT=8080", "HOME=/home/vcap/app", "DEPS_DIR=/home/vcap/deps"}

func TestPlainWords(t *testing.T) {
	tests := []struct {
		command string
		want    string // words joined by |, empty when a shell is needed
	}{
		{"./app", "./app"},
		{"  ./app\t-port  $PORT ", "./app|-port|8080"},
		{"./app --listen=:${PORT}", "./app|--listen=:8080"},
		{"$HOME/app $PORT$PORT", "/home/vcap/app/app|80808080"},
		{"$DEPS_DIR/0/static x", "/home/vcap/deps/0/static|x"},
		{"app", ""},          // may be a builtin
		{"exec ./app", ""},   // is one
		{"A=./b", ""},        // an assignment
		{"A=1 ./app", ""},    // another
		{"./app $PORTS", ""}, // another variable
		{"./app ${PORT:-1}", ""},
		{"./app 'a b'", ""},
		{"./app *", ""},
		{"./app ~", ""},
		{"./app {a,b}", ""},
		{"./app; ./b", ""},
		{"./app\n./b", ""},
		{"./app\u00a0x", ""},
		{"./app # comment", ""},
		{"./app !x", ""},
		{"", ""},
		{"  ", ""},
	}
	for _, test := range tests {
		got, ok := plainWords(test.command, wordsEnv)
		if ok != (test.want != "") || ok && strings.Join(got, "|") != test.want {
			t.Errorf("plainWords(%q): got %q, %v; want %q", test.command, got, ok, test.want)
		}
	}
}

func TestPlainWordsNeedsPlainValues(t *testing.T) {
	if got, ok := plainWords("./app $PORT", []string{"PORT=80 90"}); ok {
		t.Errorf("got %q; want a shell", got)
	}
}

// FuzzPlainWords holds the short cut against the shell that it saves.
func FuzzPlainWords(f *testing.F) {
	for _, seed := range []string{"./app", "./app $PORT", "./a ${PORT}x =b", "./a $HOME$", "./a {$PORT}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		got, ok := plainWords(command, wordsEnv)
		if !ok {
			return
		}
		cmd := exec.Command("/bin/bash", "-c", `printf '%s\n' `+command)
		cmd.Env = wordsEnv
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		if want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); !slices.Equal(got, want) {
			t.Errorf("plainWords(%q): got %q; bash has %q", command, got, want)
		}
	})
}
