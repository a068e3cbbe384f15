package scp

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// take takes what the other end sends into target: into it where it is a
// directory, else under its name.
func (c *copier) take(target string) error {
	info, err := os.Stat(target)
	into := err == nil && info.IsDir()
	if c.directory && !into {
		err := errors.New(target + ": Not a directory")
		c.complain(err)
		return err
	}
	if err := c.accept(); err != nil {
		return err
	}
	return c.takeAll(target, into)
}

// takeAll takes the messages up to the end of the directory, or of all.
func (c *copier) takeAll(target string, into bool) error {
	var stamp *times
	for {
		line, err := c.line()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if failed, err := c.peerFailed(line); failed {
			if err != nil {
				return err
			}
			continue
		}
		if line != "" && line[0] == 'T' {
			t, err := parseTimes(line)
			if err != nil {
				return c.refuse(err)
			}
			stamp = &t
			if err := c.accept(); err != nil {
				return err
			}
			continue
		}
		m, err := parseMessage(line)
		if err != nil {
			return c.refuse(err)
		}
		if m.kind == 'E' {
			return c.accept()
		}
		if err := c.takeOne(m, target, into, stamp); err != nil {
			return err
		}
		stamp = nil
	}
}

// peerFailed takes the message of the other end about a file that it cannot send,
// which gets no answer. The error is that it gives up.
func (c *copier) peerFailed(line string) (ok bool, err error) {
	if line == "" || line[0] != warning && line[0] != fatal {
		return false, nil
	}
	c.faults++
	if line[0] == fatal {
		err = errors.New("the other end says: " + line[1:])
	}
	return true, err
}

// refuse ends the copy: the rest cannot be parsed.
func (c *copier) refuse(err error) error {
	_, _ = io.WriteString(c.out, string(rune(fatal))+"scp: "+err.Error()+"\n")
	return err
}

func (c *copier) takeOne(m message, target string, into bool, stamp *times) error {
	path := target
	if into {
		path = filepath.Join(target, m.name)
	}
	var err error
	switch {
	case m.kind == 'D' && !c.recursive:
		return c.refuse(errors.New("received directory without -r"))
	case m.kind == 'D':
		err = c.takeDirectory(m, path)
	default:
		err = c.takeFile(m, path)
	}
	if err == nil && stamp != nil {
		if err := os.Chtimes(path, stamp.accessed, stamp.modified); err != nil && !os.IsNotExist(err) {
			c.faults++
		}
	}
	return err
}

func (c *copier) takeDirectory(m message, path string) error {
	if err := os.Mkdir(path, m.mode|0o700); err != nil && !os.IsExist(err) {
		return c.refuse(err)
	}
	if err := c.accept(); err != nil {
		return err
	}
	if err := c.takeAll(path, true); err != nil {
		return err
	}
	if c.preserve {
		return os.Chmod(path, m.mode)
	}
	return nil
}

// takeFile takes a file's bytes. A file that cannot be written is reported, and its
// bytes are not asked for.
func (c *copier) takeFile(m message, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, m.mode)
	if err != nil {
		c.complain(err)
		return nil
	}
	defer f.Close()
	if err := c.accept(); err != nil {
		return err
	}
	kept := &keeper{file: f}
	if _, err := io.CopyN(kept, c.in, m.size); err != nil {
		return err
	}
	err = kept.err
	if err == nil && c.preserve {
		err = f.Chmod(m.mode)
	}
	if err == nil {
		err = f.Close()
	}
	if _, answered := c.answer(); answered != nil {
		return answered
	}
	if err != nil {
		c.complain(err)
		return nil
	}
	return c.accept()
}

// keeper writes to a file, and reads on when the file takes no more (the disk
// is full, say): the rest of the bytes comes all the same.
type keeper struct {
	file *os.File
	err  error
}

func (k *keeper) Write(p []byte) (int, error) {
	if k.err == nil {
		_, k.err = k.file.Write(p)
	}
	return len(p), nil
}
