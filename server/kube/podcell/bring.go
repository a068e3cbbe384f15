package podcell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/lifecycle"
	"cupola/server/kube"
)

// bringScript runs the helper in a container whose image does not have it: DIGEST SIZE ARGUMENT… It says "have", or "need", and then
// reads the helper from its standard input, which it keeps for the next session.
const bringScript = `for dir in /tmp /var/tmp "$HOME" .; do
	at=$dir/.cupola-$1
	[ -x "$at/lifecycle" ] && break
	mkdir -p "$at" 2> /dev/null && [ -w "$at" ] && break
done
if [ ! -x "$at/lifecycle" ]; then
	echo need
	head -c "$2" > "$at/new.$$" && [ "$(wc -c < "$at/new.$$")" -eq "$2" ] && chmod 755 "$at/new.$$" && mv "$at/new.$$" "$at/lifecycle" && ln -sf lifecycle "$at/sh" && ln -sf lifecycle "$at/scp" || exit 1
fi
echo have
shift 2
exec "$at/lifecycle" "$@"
`

// bringTime is how long the helper may take to get into a container.
const bringTime = time.Minute

// errNoShell is of an image that cannot run bringScript.
var errNoShell = errors.New("the image has no shell /bin/sh, which cupola needs to start its SSH server in a pod: use kubectl debug")

// bring runs the helper in an instance of a docker app.
func (c *Cell) bring(ctx context.Context, guid string, args []string) (io.ReadWriteCloser, error) {
	digest, err := lifecycle.HelperDigest()
	if err != nil {
		return nil, err
	}
	program, err := lifecycle.OpenHelper()
	if err != nil {
		return nil, err
	}
	defer program.Close()
	argv := append([]string{"/bin/sh", "-c", bringScript, "sh", digest, strconv.FormatInt(program.Size, 10)}, args...)
	opened, err := c.cfg.Cluster.Exec(ctx, guid, kube.ProcessContainer, argv...)
	if err != nil {
		return nil, err
	}
	late := time.AfterFunc(bringTime, func() { _ = opened.Close() })
	defer late.Stop()
	stream, err := greeted(opened)
	if err != nil {
		if strings.Contains(err.Error(), "/bin/sh") {
			err = errNoShell
		}
		return nil, err
	}
	if err := stream.hand(program); err != nil {
		_ = stream.Close()
		return nil, fmt.Errorf("start the SSH server in pod %s: %w", guid, err)
	}
	return asStream(greeted(stream))
}

// hand gives bringScript the helper, if it needs it.
func (a *attached) hand(program io.Reader) error {
	word, err := a.from.ReadString('\n')
	if err == nil && strings.TrimSpace(word) == "need" {
		if _, err = io.Copy(a, program); err == nil {
			word, err = a.from.ReadString('\n')
		}
	}
	if err == nil && strings.TrimSpace(word) != "have" {
		err = fmt.Errorf("got %q", word)
	}
	return err
}
