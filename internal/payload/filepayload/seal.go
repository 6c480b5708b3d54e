package filepayload

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/makegood-dev/makegood/internal/payload"
)

const (
	// magic begins every file, and says how the rest is to be read.
	magic = "MGP1"
	// saltBytes follow it; from them, the folder's key, job and writer comes the key of the file.
	saltBytes = 32
	keyBytes  = 32
	header    = len(magic) + saltBytes
	// pieceBytes is how much is sealed at a time. Each piece is followed by its tag.
	pieceBytes = 64 << 10
	tagBytes   = 16
)

// pieces is how many pieces a payload has; an empty one has one, for its end.
func pieces(bytes int64) int64 { return max(1, (bytes+pieceBytes-1)/pieceBytes) }

// sealedBytes is how long the file of a payload is.
func sealedBytes(bytes int64) int64 { return int64(header) + bytes + tagBytes*pieces(bytes) }

// sealer returns the cipher of one file.
func (s *Store) sealer(at payload.Place, salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, s.key, salt, "makegood payload 1\n"+at.Job+"\n"+at.By, keyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce is the nonce of a piece: its number, and whether it is the last. No other file has the same key.
func nonce(piece int64, last bool) []byte {
	n := make([]byte, 12)
	binary.BigEndian.PutUint64(n[3:], uint64(piece))
	if last {
		n[11] = 1
	}
	return n
}

// seal writes the bytes of from, sealed, piece by piece.
func (s *Store) seal(ctx context.Context, at payload.Place, to io.Writer, from io.Reader) error {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails, says its documentation
	aead, err := s.sealer(at, salt)
	if err != nil {
		return err
	}
	if _, err := to.Write(append([]byte(magic), salt...)); err != nil {
		return err
	}
	// One piece is read ahead: the last one shows only by the end behind it.
	piece, ahead, sealed := make([]byte, pieceBytes), make([]byte, pieceBytes), make([]byte, 0, pieceBytes+tagBytes)
	n, err := fill(ctx, from, piece)
	for i := int64(0); err == nil; i++ {
		var more int
		if n == pieceBytes {
			more, err = fill(ctx, from, ahead)
		}
		if err != nil {
			break
		}
		if _, err := to.Write(aead.Seal(sealed, nonce(i, more == 0), piece[:n], nil)); err != nil {
			return err
		}
		if more == 0 {
			return nil
		}
		piece, ahead, n = ahead, piece, more
	}
	return err
}

// fill reads a piece, shorter at the end. An error of the reader is no end: io.ReadFull does not distinguish the two.
func fill(ctx context.Context, from io.Reader, piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var read int
		read, err = from.Read(piece[n:])
		n += read
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// opened reads a part of a sealed file.
type opened struct {
	file *os.File
	aead cipher.AEAD
	// piece is the index of the next piece, and of how many there are; skip bytes precede the part, left bytes are to come.
	piece, of  int64
	skip, left int64
	buffer     []byte
	// plain has opened bytes that were not read.
	plain []byte
}

// unseal returns a reader of n bytes from offset on of a file that holds so many bytes.
func (s *Store) unseal(at payload.Place, file *os.File, bytes, offset, n int64) (io.ReadCloser, error) {
	head := make([]byte, header)
	if _, err := io.ReadFull(file, head); err != nil {
		return nil, fmt.Errorf("%w: it has no header: %w", payload.ErrAltered, err)
	}
	if string(head[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin as a payload does", payload.ErrAltered)
	}
	aead, err := s.sealer(at, head[len(magic):])
	if err != nil {
		return nil, err
	}
	first := offset / pieceBytes
	if _, err := file.Seek(int64(header)+first*(pieceBytes+tagBytes), io.SeekStart); err != nil {
		return nil, err
	}
	return &opened{
		file: file, aead: aead, piece: first, of: pieces(bytes), skip: offset % pieceBytes, left: n, buffer: make([]byte, pieceBytes+tagBytes),
	}, nil
}

// Read opens a piece whenever the one before was read. An empty payload has a piece, too, which is not looked at: its
// length and its hash suffice.
func (o *opened) Read(p []byte) (int, error) {
	if o.left == 0 {
		return 0, io.EOF
	}
	if len(o.plain) == 0 {
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p[:min(int64(len(p)), o.left)], o.plain)
	o.plain, o.left = o.plain[n:], o.left-int64(n)
	return n, nil
}

func (o *opened) next() error {
	last := o.piece == o.of-1
	n, err := io.ReadFull(o.file, o.buffer)
	if err != nil && !(last && errors.Is(err, io.ErrUnexpectedEOF)) {
		return fmt.Errorf("%w: piece %d of %d cannot be read: %w", payload.ErrAltered, o.piece+1, o.of, err)
	}
	plain, err := o.aead.Open(o.buffer[:0], nonce(o.piece, last), o.buffer[:n], nil)
	if err != nil || int64(len(plain)) <= o.skip {
		return fmt.Errorf("%w: piece %d of %d is another", payload.ErrAltered, o.piece+1, o.of)
	}
	o.plain, o.skip = plain[o.skip:], 0
	o.piece++
	return nil
}

// Close closes the file.
func (o *opened) Close() error { return o.file.Close() }
