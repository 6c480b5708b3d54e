package embedded

import "path/filepath"

// path is where the store is; empty: nothing is kept.
func (c Config) path() string {
	if c.Dir == "" {
		return ""
	}
	path := filepath.Join(c.Dir, DataFile)
	if whole, err := filepath.Abs(path); err == nil {
		return whole // Agents may change the working directory.
	}
	return path
}
