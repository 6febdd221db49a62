// What the window is like, as views need to know it.
import { useEffect, useState } from "../html.js";

const PHONE = matchMedia("(max-width: 720px)");

/** Whether the page is laid out for a phone. */
export function usePhone() {
  const [phone, setPhone] = useState(PHONE.matches);
  useEffect(() => {
    const look = () => setPhone(PHONE.matches);
    PHONE.addEventListener("change", look);
    return () => PHONE.removeEventListener("change", look);
  }, []);
  return phone;
}
