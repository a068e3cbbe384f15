package gitpush

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// output is the answer to a push: lines that git prints behind "remote:" while it
// waits, and at last what became of each ref.
type output struct {
	mu  sync.Mutex
	w   io.Writer
	mux *sideband.Muxer // nil: the client shows no messages
}

func newOutput(w io.Writer, sidebands bool) *output {
	o := &output{w: w}
	if sidebands {
		o.mux = sideband.NewMuxer(sideband.Sideband64k, w)
	}
	return o
}

// line shows a line. What a terminal would act on is left out.
func (o *output) line(format string, args ...any) {
	if o.mux == nil {
		return
	}
	text := strings.Map(printed, strings.TrimRight(fmt.Sprintf(format, args...), "\r\n"))
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.mux.WriteChannel(sideband.ProgressMessage, []byte(text+"\n")) // the client may be gone: its context ends then
	if w, ok := o.w.(http.ResponseWriter); ok {
		_ = http.NewResponseController(w).Flush()
	}
}

func printed(r rune) rune {
	if r < ' ' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}

// result is what became of a ref; reason is "" if it is as the push wants it.
type result struct {
	name   string
	reason string
}

// report ends the answer (gitprotocol-pack, "Report Status").
func (o *output) report(wanted bool, results []result) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if wanted {
		var status bytes.Buffer
		e := pktline.NewEncoder(&status)
		lines := []string{"unpack ok\n"}
		for _, r := range results {
			if r.reason == "" {
				lines = append(lines, "ok "+r.name+"\n")
			} else {
				lines = append(lines, "ng "+r.name+" "+oneLine(r.reason)+"\n")
			}
		}
		if err := e.EncodeString(lines...); err != nil {
			return err
		}
		if err := e.Flush(); err != nil {
			return err
		}
		if err := o.status(&status); err != nil {
			return err
		}
	}
	if o.mux == nil {
		return nil
	}
	return pktline.NewEncoder(o.w).Flush()
}

func (o *output) status(text io.Reader) error {
	w := o.w
	if o.mux != nil {
		w = o.mux
	}
	_, err := io.Copy(w, text)
	return err
}

// maxReason bounds the reason of a refused ref, in bytes.
const maxReason = 400

// oneLine is a text as one line of bounded length.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return printed(r)
	}, text)), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
