package sshproxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestHostKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ssh_host_key")
	first, err := HostKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := HostKey(path)
	if err != nil {
		t.Fatal(err)
	}
	print := Fingerprint(first.PublicKey())
	if print != Fingerprint(again.PublicKey()) || "SHA256:"+print != ssh.FingerprintSHA256(first.PublicKey()) || len(print) != 43 {
		t.Errorf("got fingerprints %s and %s", print, Fingerprint(again.PublicKey()))
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v; want a file for root's eyes only", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("got %v; want the key alone", entries)
	}
	if err := os.WriteFile(path, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := HostKey(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v; want an error that names the file, and no new key", err)
	}
}
