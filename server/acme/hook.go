package acme

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/mholt/acmez/v3/acme"
)

// hook solves DNS-01 challenges by a command. It is called with "present" or "cleanup",
// the name of a TXT record and its value. After "present" ends, the record must be
// visible at the domain's name servers.
type hook struct{ command string }

// hookTime bounds one call.
const hookTime = 10 * time.Minute

// Present adds the record.
func (h hook) Present(ctx context.Context, c acme.Challenge) error { return h.call(ctx, "present", c) }

// CleanUp removes the record.
func (h hook) CleanUp(ctx context.Context, c acme.Challenge) error { return h.call(ctx, "cleanup", c) }

func (h hook) call(ctx context.Context, action string, c acme.Challenge) error {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, h.command, action, c.DNS01TXTRecordName(), c.DNS01KeyAuthorization()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("--acme-dns-hook %s %s: %w: %s", h.command, action, err, bytes.TrimSpace(out[:min(len(out), 4096)]))
	}
	return nil
}
