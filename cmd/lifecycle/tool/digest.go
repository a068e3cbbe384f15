package tool

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

func sum(name string, h func() hash.Hash) tool {
	return flags("cb", func(s streams, o options, names []string) error { return checksum(s, name, h, o, names) })
}

func shasum(s streams, o options, names []string) error {
	algorithm, ok := o['a']
	if !ok {
		algorithm = "1"
	}
	h, ok := map[string]func() hash.Hash{"1": sha1.New, "224": sha256.New224, "256": sha256.New, "384": sha512.New384, "512": sha512.New}[algorithm]
	if !ok {
		return fmt.Errorf("unknown algorithm %s", algorithm)
	}
	return checksum(s, "shasum", h, o, names)
}

// checksum prints sums, and with -c checks those of a list.
func checksum(s streams, tool string, h func() hash.Hash, o options, names []string) error {
	if o.has('c') {
		return checkSums(s, h, names)
	}
	return eachInput(s, names, func(name string, r io.Reader) error {
		sum := h()
		if _, err := io.Copy(sum, r); err != nil {
			return fmt.Errorf("%s: %w", tool, err)
		}
		_, err := fmt.Fprintf(s.out, "%x  %s\n", sum.Sum(nil), name)
		return err
	})
}

func checkSums(s streams, h func() hash.Hash, lists []string) error {
	var failed error
	err := eachLine(s, lists, func(line string) {
		want, name, ok := strings.Cut(line, " ")
		name = strings.TrimLeft(name, " *")
		if !ok || name == "" {
			return
		}
		verdict := "FAILED"
		if data, err := os.ReadFile(name); err == nil {
			sum := h()
			sum.Write(data)
			if fmt.Sprintf("%x", sum.Sum(nil)) == strings.ToLower(want) {
				verdict = "OK"
			}
		}
		if verdict != "OK" {
			failed = status(1)
		}
		fmt.Fprintf(s.out, "%s: %s\n", name, verdict)
	})
	return errors.Join(err, failed)
}

// base64Tool knows -d, -w and -i; lines are 76 characters long.
func base64Tool(s streams, args []string) error {
	if len(args) > 0 && args[0] == "--decode" {
		args[0] = "-d"
	}
	o, names, err := parse("dw:i", args)
	if err != nil {
		return err
	}
	width := 76
	if w, ok := o['w']; ok {
		if width, err = strconv.Atoi(w); err != nil {
			return err
		}
	}
	return eachInput(s, names, func(_ string, r io.Reader) error {
		if o.has('d') {
			_, err := io.Copy(s.out, base64.NewDecoder(base64.StdEncoding, r))
			return err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return writeLines(s.out, base64.StdEncoding.EncodeToString(data), width)
	})
}

// writeLines breaks text into lines of width; 0 makes none, without newline.
func writeLines(w io.Writer, text string, width int) error {
	if width <= 0 {
		_, err := io.WriteString(w, text)
		return err
	}
	for text != "" {
		n := min(width, len(text))
		if _, err := fmt.Fprintln(w, text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// gzipTool is gzip with the flags that its name implies.
func gzipTool(implied string) tool {
	return flags("dckfnqv123456789", func(s streams, o options, names []string) error {
		for i := range len(implied) {
			o[implied[i]] = ""
		}
		return gzipOrBack(s, o, names)
	})
}

// gzipOrBack knows -d, -c, -k, -f and levels.
func gzipOrBack(s streams, o options, names []string) error {
	level := gzip.DefaultCompression
	for n := byte('1'); n <= '9'; n++ {
		if o.has(n) {
			level = int(n - '0')
		}
	}
	convert := func(w io.Writer, r io.Reader) error {
		if o.has('d') {
			return inflate(w, r)
		}
		return deflate(w, r, level)
	}
	if o.has('c') || len(names) == 0 {
		return eachInput(s, names, func(_ string, r io.Reader) error { return convert(s.out, r) })
	}
	return each(s, "gzip", names, func(name string) error {
		target, ok := name+".gz", !strings.HasSuffix(name, ".gz")
		if o.has('d') {
			target, ok = strings.CutSuffix(name, ".gz")
		}
		if !ok {
			return fmt.Errorf("%s: unknown suffix, ignored", name)
		}
		if err := convertFile(target, name, o.has('f'), convert); err != nil {
			return err
		}
		if o.has('k') {
			return nil
		}
		return os.Remove(name)
	})
}

func convertFile(to, from string, force bool, convert func(io.Writer, io.Reader) error) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	out, err := os.OpenFile(to, flags, info.Mode().Perm())
	if err != nil {
		return err
	}
	if err := errors.Join(convert(out, in), out.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

func inflate(w io.Writer, r io.Reader) error {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); !bytes.Equal(magic, []byte("\x1f\x8b")) {
		return errors.New("not in gzip format")
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, z)
	return err
}

func deflate(w io.Writer, r io.Reader, level int) error {
	z, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return err
	}
	_, err = io.Copy(z, r)
	return errors.Join(err, z.Close())
}
