//! Values in numbered places that are used again: a hot free place is taken first.

use concurve_probe::huge_pages;

/// No place.
pub const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.places[at as usize] = Some(value);
            return at;
        }
        if self.places.len() == self.places.capacity() {
            self.places.reserve(1);
            huge_pages::prefer(self.places.spare_capacity_mut());
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }

    pub fn remove(&mut self, at: u32) -> Option<T> {
        let value = self.places.get_mut(at as usize)?.take()?;
        self.free.push(at);
        Some(value)
    }

    pub fn get(&self, at: u32) -> Option<&T> {
        self.places.get(at as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.places.get_mut(at as usize)?.as_mut()
    }

    /// Places in use.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Places ever used: numbers are below it.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = self.places.iter().enumerate();
        numbered.filter_map(|(at, value)| Some((at as u32, value.as_ref()?)))
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    /// The value at a place that is known to be in use.
    fn index(&self, at: u32) -> &T {
        self.places[at as usize].as_ref().expect("place in use")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, at: u32) -> &mut T {
        self.places[at as usize].as_mut().expect("place in use")
    }
}
