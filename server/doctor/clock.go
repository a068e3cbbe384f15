package doctor

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"
)

func (m *machine) clock(context.Context) Result {
	const fix = "sudo timedatectl set-ntp true   # or: sudo date -s 'YYYY-MM-DD HH:MM'"
	day := m.now.UTC().Format(time.DateOnly)
	if built := buildTime(); m.now.Before(built) {
		return failure("it is "+day+", before this program was built: "+built.UTC().Format(time.DateOnly), fix)
	}
	ca, err := readCertificate(filepath.Join(m.DataDir, "ca.pem"))
	switch {
	case err != nil:
		return fine(day)
	case m.now.Before(ca.NotBefore):
		return failure("it is "+day+", before the data directory's CA was created: "+ca.NotBefore.Format(time.DateOnly), fix)
	case m.now.After(ca.NotAfter):
		return failure("the data directory's CA expired on "+ca.NotAfter.Format(time.DateOnly), "sudo rm "+filepath.Join(m.DataDir, "ca*.pem")+"   # the next start creates one")
	}
	return fine(day)
}

// buildTime returns the time of the commit that this program was built from, or
// of its file.
func buildTime() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return t
			}
		}
	}
	name, err := os.Executable()
	if err != nil {
		return time.Time{}
	}
	st, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

func readCertificate(name string) (*x509.Certificate, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, os.ErrInvalid
	}
	return x509.ParseCertificate(block.Bytes)
}
