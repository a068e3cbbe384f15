package mail

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/runtime/pattern"
)

// box is a directory of messages. Each is two files, ID.json and ID.eml; it is there once
// the first of them is.
type box struct {
	dir      string
	maxBytes int64
	maxCount int
	one      sync.Mutex // held while room is made, and until it is used
}

// Message describes a message.
type Message struct {
	ID       string    `json:"id"`
	Received time.Time `json:"received_at"`
	From     string    `json:"from"` // of the envelope, like To
	To       []string  `json:"to"`
	Subject  string    `json:"subject"`
	Size     int64     `json:"size"`
}

// idRule is what IDs look like: they sort by the time of reception, in microseconds. Earlier ones had only seconds.
var idRule = pattern.Lazy(`^[0-9]{14}([0-9]{6})?-[A-Z2-7]{26}$`)

var (
	errNone     = errors.New("there is no such message")
	errTooLarge = errors.New("the message is too large")
	errNoRoom   = errors.New("there is no room for the message")
)

func (b *box) file(id, kind string) string { return filepath.Join(b.dir, id+"."+kind) }

// add keeps a message, and deletes old ones to make room.
func (b *box) add(m Message, content io.Reader) error {
	m.ID = strings.Replace(m.Received.UTC().Format("20060102150405.000000"), ".", "", 1) + "-" + rand.Text()
	if err := b.fill(&m, content); err != nil {
		return errors.Join(err, os.RemoveAll(b.file(m.ID, "eml")), os.RemoveAll(b.file(m.ID, "new")))
	}
	return nil
}

func (b *box) fill(m *Message, content io.Reader) (err error) {
	if m.Size, err = write(b.file(m.ID, "eml"), content); err != nil {
		return err
	}
	m.Subject = subject(b.file(m.ID, "eml"))
	about, err := json.Marshal(m)
	if err != nil {
		return err
	}
	b.one.Lock()
	defer b.one.Unlock()
	if err := b.makeRoom(int64(len(about))); err != nil {
		return err
	}
	if _, err := write(b.file(m.ID, "new"), bytes.NewReader(about)); err != nil {
		return err
	}
	if err := os.Rename(b.file(m.ID, "new"), b.file(m.ID, "json")); err != nil {
		return err
	}
	return syncDir(b.dir)
}

// subject is the decoded subject of a message; "" if it has none that can be read.
func subject(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	const maxHeader = 64 << 10
	m, err := netmail.ReadMessage(io.LimitReader(f, maxHeader))
	if err != nil {
		return ""
	}
	text := m.Header.Get("Subject")
	if decoded, err := new(mime.WordDecoder).DecodeHeader(text); err == nil {
		text = decoded
	}
	const maxSubject = 200
	return strings.ToValidUTF8(text[:min(len(text), maxSubject)], "")
}

// write makes a file of at most maxMessage bytes, and syncs it.
func write(name string, content io.Reader) (size int64, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(f, io.LimitReader(content, maxMessage+1))
	if err == nil && size > maxMessage {
		err = errTooLarge
	}
	return size, errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeRoom deletes the oldest messages until size more bytes fit.
func (b *box) makeRoom(size int64) error {
	entries, err := os.ReadDir(b.dir) // sorted, so by time
	if err != nil {
		return err
	}
	count, used := 0, size
	sizes := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it was deleted meanwhile
		}
		id, kind, _ := strings.Cut(e.Name(), ".")
		sizes[id] += info.Size()
		used += info.Size()
		if kind == "json" {
			count++
		}
	}
	for _, e := range entries {
		if used <= b.maxBytes && count < b.maxCount {
			return nil
		}
		id, kind, _ := strings.Cut(e.Name(), ".")
		if kind != "json" {
			continue
		}
		if err := b.remove(id); err != nil {
			return err
		}
		count, used = count-1, used-sizes[id]
	}
	if used > b.maxBytes {
		return errNoRoom
	}
	return nil
}

// remove deletes a message; its description first, so that none is listed without content.
func (b *box) remove(id string) error {
	if !idRule().MatchString(id) {
		return errNone
	}
	if err := os.Remove(b.file(id, "json")); errors.Is(err, fs.ErrNotExist) {
		return errNone
	} else if err != nil {
		return err
	}
	return os.Remove(b.file(id, "eml"))
}

// tidy deletes what a server left that was killed.
func (b *box) tidy() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, kind, _ := strings.Cut(e.Name(), ".")
		_, err := os.Stat(b.file(id, "json"))
		if kind == "new" || kind == "eml" && err != nil {
			if err := os.Remove(filepath.Join(b.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// list lists at most so many messages, the newest first.
func (b *box) list(limit int) (all []Message, err error) {
	names, err := filepath.Glob(filepath.Join(b.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(y, x) })
	for _, name := range names[:min(len(names), limit)] {
		text, err := os.ReadFile(name)
		var m Message
		if err != nil || json.Unmarshal(text, &m) != nil {
			continue // it was deleted meanwhile, or is damaged
		}
		all = append(all, m)
	}
	return all, nil
}

// copyTo writes the content of a message.
func (b *box) copyTo(w io.Writer, id string) error {
	if !idRule().MatchString(id) {
		return errNone
	}
	f, err := os.Open(b.file(id, "eml"))
	if errors.Is(err, fs.ErrNotExist) {
		return errNone
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
