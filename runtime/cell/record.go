package cell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"cupola/runtime/container"
	"cupola/runtime/lrp"
	"cupola/runtime/users"
)

// record is what container.json says: all that adopting a container takes, and
// nothing that is secret.
type record struct {
	Container      lrp.Container // without what stripped removes
	Boot           string        // of the machine when the container was started
	Users          users.Range   // of the host, that the container's are; zero where an earlier version made it
	Phase          lrp.Phase
	Address        string
	StartedAt      time.Time // zero: it was never started
	User           login     // of the action
	Programs       string    // where cupola's programs are; "": an earlier version's contract.LifecycleDir
	Ready          bool
	Role           lrp.Role
	FilesDigest    string // of its Files; "" where there is no place for any
	FilesSince     time.Time
	HasAuthority   bool                   // there are certificates to trust
	CertifiedUntil time.Time              // when its certificate ends; zero: it has none
	TLSPorts       bool                   // it has those of lrp.MapPorts
	InternalNames  []string               // of its certificate for other containers
	Steps          map[string]*stepRecord // of the program; guarded like the record
	Exit           *container.Exit        // of the process that counts
	ExitOf         string                 // its step
	Stopped        bool                   // Stop was called
	Ending         *ending                // once the program has ended
	Collected      bool                   // the result was read
	Reported       bool                   `json:"Told"` // the end was reported: only clearing away is left
	Result         []byte
	Outputs        []lrp.Blob
}

// ending is how and why a container ended.
type ending struct {
	Exit    container.Exit
	Stopped bool     // Stop was called
	Failed  bool     // the program did not end well
	Reasons []string // why, in Diego's words
}

const recordFile = "container.json"

// stripped is c without environment, files, commands and credentials.
func stripped(c lrp.Container) lrp.Container {
	c.Env, c.Files, c.Trees, c.Layers, c.CachedDependencies = nil, nil, nil, nil, nil
	c.Setup, c.Action, c.Monitor, c.Sidecars = lrp.Action{}, lrp.Action{}, lrp.Action{}, nil
	for _, checks := range []*[]lrp.Check{&c.Checks.Liveness, &c.Checks.Readiness, &c.Checks.Active} {
		*checks = withoutRuns(*checks)
	}
	c.ImageUsername, c.ImagePassword = "", ""
	return c
}

func withoutRuns(checks []lrp.Check) []lrp.Check {
	checks = slices.Clone(checks)
	for n := range checks {
		checks[n].Run = nil
	}
	return checks
}

// writeRecord replaces the record in dir. A killed daemon leaves the old one or
// the new one. It is not synced: a machine that loses power loses the
// containers as well.
func writeRecord(dir string, r record) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode container record: %w", err)
	}
	path := filepath.Join(dir, recordFile)
	temp := path + ".new"
	if err := overwrite(temp, content); err != nil {
		return fmt.Errorf("write container record: %w", err)
	}
	// The former record becomes the file that the next one is written to: to make a file
	// each time, and to give up one, took a fifth of the processor time of a start.
	if unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE) == nil {
		return nil
	}
	return os.Rename(temp, path) // this is the first record, or the file system cannot exchange files
}

// overwrite makes content what the file holds, followed by white space where it was
// longer: ext4 writes a file that was emptied to the disk when it is closed.
func overwrite(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil {
		content = append(content, bytes.Repeat([]byte{'\n'}, max(0, int(st.Size())-len(content)))...)
		_, err = f.Write(content)
	}
	return errors.Join(err, f.Close())
}

func readRecord(dir string) (record, error) {
	var r record
	content, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(content, &r)
}

// bootID names the time since the machine came up; "" where the kernel does
// not tell.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
