package podcell

import (
	"bufio"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestBringScript runs the script by this machine's shell: the first time it takes the program, which is there the second time.
func TestBringScript(t *testing.T) {
	const program = "#!/bin/sh\necho \"SSH-2.0 $*\"\ncat\n"
	digest := strings.ToLower(rand.Text())
	t.Cleanup(func() { _ = os.RemoveAll("/tmp/.cupola-" + digest) })
	for _, first := range []bool{true, false} {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", bringScript, "sh", digest, strconv.Itoa(len(program)), "sshd", "a b")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		s := &attached{stdio{out, in}, bufio.NewReader(out)}
		given := &strings.Reader{}
		given.Reset(program)
		if err := s.hand(given); err != nil || (given.Len() == 0) != first {
			t.Errorf("the script was handed all but %d bytes, %v; the first time is %t", given.Len(), err, first)
		}
		if _, err := io.WriteString(s, "hello"); err != nil {
			t.Error(err)
		}
		_ = in.Close()
		if text, err := io.ReadAll(s); err != nil || string(text) != "SSH-2.0 sshd a b\nhello" {
			t.Errorf("got %q, %v", text, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// stdio are the standard streams of a program.
type stdio struct {
	io.Reader
	io.WriteCloser
}

func TestHandFails(t *testing.T) {
	for _, said := range []string{"", "need", "need\n", "what\n"} {
		s := &attached{stdio{nil, discard{}}, bufio.NewReader(strings.NewReader(said))}
		if err := s.hand(strings.NewReader("program")); err == nil {
			t.Errorf("%q: the program counts as handed", said)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
