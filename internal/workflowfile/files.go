package workflowfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// File is a workflow file that was read.
type File struct {
	// Name is its path, as messages give it.
	Name     string
	Compiled *Compiled
}

// IsFile reports whether a file is taken for a workflow file: by its extension, .yaml or .yml.
func IsFile(name string) bool {
	extension := path.Ext(name)
	return extension == ".yaml" || extension == ".yml"
}

// ReadAll reads every workflow file of a file system, also in folders below, in the order of their paths; at is the
// path of its root, or empty. The error has all errors of all files, in a line each: FILE:LINE: MESSAGE; two files with
// one workflow are an error, too. The valid files are returned all the same. A LimitsFile is only checked.
func ReadAll(files fs.FS, at string, options ...Option) (all []File, err error) {
	if files == nil {
		return nil, nil
	}
	var wrong []error
	first := map[string]string{}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !IsFile(name) {
			return err
		}
		source, err := readLimited(files, name)
		if err != nil {
			return err
		}
		name = path.Join(at, name)
		if path.Base(name) == LimitsFile {
			_, err := ParseLimits(name, source)
			wrong = append(wrong, err)
			return nil
		}
		compiled, err := Parse(name, source, options...)
		if err != nil {
			wrong = append(wrong, err)
			return nil
		}
		workflow := compiled.Workflow.Name
		if other, twice := first[workflow]; twice {
			wrong = append(wrong, fmt.Errorf("%s: the workflow %s is in %s already", name, workflow, other))
			return nil
		}
		first[workflow] = name
		all = append(all, File{name, compiled})
		return nil
	})
	return all, errors.Join(append(wrong, err)...)
}

// readLimited reads a file as far as a workflow file may go, and a byte more, so that Parse sees too much.
func readLimited(files fs.FS, name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, MaxSourceBytes+1))
}
