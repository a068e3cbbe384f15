package builder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cupola/runtime/contract"
)

// outputLimit bounds what is kept of a script's standard output.
const outputLimit = 1 << 20

// outputDelay is how long what a script left running may hold its output open.
const outputDelay = 2 * time.Second

// detect asks the buildpacks in order; the first that takes the app wins.
func (b *builder) detect() (choice, error) {
	for _, name := range b.order {
		dir, err := b.buildpackDir(name)
		if err != nil {
			fmt.Fprintln(b.stderr, err)
			continue
		}
		info, err := os.Stat(filepath.Join(dir, "bin", "detect"))
		if err != nil {
			fmt.Fprintln(b.stderr, err)
			continue
		}
		if info.Mode()&0o111 != 0o111 {
			fmt.Fprintln(b.stdout, "WARNING: buildpack script '/bin/detect' is not executable")
		}
		output, err := b.capture(dir, "detect", b.buildDir)
		if err == nil {
			return choice{keys: []string{name}, dir: dir, detect: strings.TrimRight(string(output), "\r\n")}, nil
		}
	}
	b.explain()
	return choice{}, errDetect
}

// supply runs the supply scripts of all buildpacks but the last.
func (b *builder) supply() error {
	for i, name := range b.suppliers() {
		dir, err := b.buildpackDir(name)
		if err != nil {
			return errSupply.by(err)
		}
		cache := filepath.Join(b.cacheDir, contract.BuildpackDir(name))
		if err := b.execute(dir, "supply", b.buildDir, cache, b.depsDir(), b.depsIndex(i)); err != nil {
			return errSupply.by(err)
		}
	}
	return nil
}

// finalize runs the last buildpack: supply and finalize, or, when it has no
// finalize script, the compile script of the time before there were several.
func (b *builder) finalize(dir string) error {
	index := b.depsIndex(len(b.suppliers()))
	cache := filepath.Join(b.cacheDir, finalCache)
	if !exists(filepath.Join(dir, "bin", "finalize")) {
		return b.compile(dir, cache, index)
	}
	if exists(filepath.Join(dir, "bin", "supply")) {
		if err := b.execute(dir, "supply", b.buildDir, cache, b.depsDir(), index); err != nil {
			return errSupply.by(err)
		}
	}
	if err := b.execute(dir, "finalize", b.buildDir, cache, b.depsDir(), index, b.profileDir()); err != nil {
		return errFinalize.by(err)
	}
	return nil
}

func (b *builder) compile(dir, cache, index string) error {
	if len(b.suppliers()) > 0 {
		fmt.Fprintln(b.stderr, missingFinalize)
	}
	if err := os.RemoveAll(filepath.Join(b.depsDir(), index)); err != nil {
		return err
	}
	return b.execute(dir, "compile", b.buildDir, cache)
}

// execute runs a script of the buildpack in dir, its output being the log.
func (b *builder) execute(dir, script string, args ...string) error {
	return b.script(dir, script, args, b.stdout)
}

// capture runs a script and returns the start of its standard output.
func (b *builder) capture(dir, script string, args ...string) ([]byte, error) {
	var output bytes.Buffer
	err := b.script(dir, script, args, &limitedWriter{w: &output, left: outputLimit})
	return output.Bytes(), err
}

func (b *builder) script(dir, script string, args []string, stdout io.Writer) error {
	// A staging that is given up ends with its container.
	cmd := exec.CommandContext(context.Background(), filepath.Join(dir, "bin", script), args...)
	cmd.Stdout = stdout
	cmd.Stderr = b.stderr
	cmd.WaitDelay = outputDelay
	began := time.Now()
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the script itself ended well
	}
	if len(b.phases) < contract.MaxPhases {
		b.phases = append(b.phases, contract.Phase{Name: script, Buildpack: b.keyOf(dir), Began: began, Ended: time.Now(), Failed: err != nil})
	}
	return err
}

// keyOf is the key of the buildpack in a directory.
func (b *builder) keyOf(dir string) string {
	i := slices.IndexFunc(b.order, func(key string) bool {
		of, err := b.buildpackDir(key)
		return err == nil && of == dir
	})
	if i < 0 {
		return ""
	}
	return b.order[i]
}

// limitedWriter drops what exceeds its limit and keeps the writer happy, so
// that a script that prints without end is not killed by a broken pipe.
type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}
