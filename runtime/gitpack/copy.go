package gitpack

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// errPack says that a stream is not a pack.
var errPack = errors.New("it is not a pack of git")

// Copy copies one pack from a stream that may go on after it, as that of an SSH session
// does. It reads no byte beyond the pack, and stops at an object beyond the limits. The
// content is for Check to look at.
func (l Limits) Copy(to io.Writer, from *bufio.Reader) error {
	w := bufio.NewWriterSize(to, 64<<10)
	c := &copier{Limits: l, from: from, to: w}
	if err := c.pack(); err != nil {
		if err == io.EOF { //nolint:errorlint // readers return it as it is
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return w.Flush()
}

// copier reads from a stream and writes what it has read.
type copier struct {
	Limits
	from *bufio.Reader
	to   *bufio.Writer
	z    io.ReadCloser // nil before the first object
	sum  int64         // bytes of objects
}

func (c *copier) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if _, werr := c.to.Write(b[:n]); werr != nil {
		return n, werr
	}
	return n, err
}

// ReadByte makes zlib read no further than its stream.
func (c *copier) ReadByte() (byte, error) {
	b, err := c.from.ReadByte()
	if err == nil {
		err = c.to.WriteByte(b)
	}
	return b, err
}

func (c *copier) pack() error {
	var header [12]byte
	if _, err := io.ReadFull(c, header[:]); err != nil {
		return err
	}
	version, count := binary.BigEndian.Uint32(header[4:]), binary.BigEndian.Uint32(header[8:])
	if !bytes.HasPrefix(header[:], []byte("PACK")) || version != 2 && version != 3 {
		return errPack
	}
	if count > c.Objects {
		return fmt.Errorf("it has %d objects; at most %d are read", count, c.Objects)
	}
	for range count {
		if err := c.object(); err != nil {
			return err
		}
	}
	_, err := io.CopyN(io.Discard, c, 20) // the checksum
	return err
}

// object copies an object (gitformat-pack, "pack-*.pack files have the following format").
func (c *copier) object() error {
	kind, size, err := c.header()
	if err != nil {
		return err
	}
	if size > c.Chain {
		return errObject
	}
	if c.sum += size; c.sum > c.All {
		return fmt.Errorf("it unpacks to more than %d bytes", c.All)
	}
	switch kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.REFDeltaObject:
		_, err = io.CopyN(io.Discard, c, 20)
	case plumbing.OFSDeltaObject:
		_, err = c.number(0)
	default:
		return errPack
	}
	if err != nil {
		return err
	}
	return c.content(size)
}

// header reads the kind and the size of an object.
func (c *copier) header() (plumbing.ObjectType, int64, error) {
	b, err := c.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	size := int64(b & 15)
	if b&0x80 != 0 {
		more, err := c.number(4)
		if err != nil {
			return 0, 0, err
		}
		size |= more
	}
	return plumbing.ObjectType(b >> 4 & 7), size, nil
}

// number reads a number of seven bits a byte, the lowest first, and shifts it.
func (c *copier) number(shift uint) (n int64, err error) {
	for ; shift < 56; shift += 7 {
		b, err := c.ReadByte()
		if err != nil {
			return 0, err
		}
		n |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			return n, nil
		}
	}
	return 0, errPack
}

// content copies the compressed content of an object.
func (c *copier) content(size int64) (err error) {
	if c.z == nil {
		c.z, err = zlib.NewReader(c)
	} else {
		err = c.z.(zlib.Resetter).Reset(c, nil)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(c.z, size+1))
	if err != nil {
		return err
	}
	if n != size {
		return errPack
	}
	return nil
}
