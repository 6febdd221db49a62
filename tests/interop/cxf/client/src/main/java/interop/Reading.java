package interop;

import jakarta.xml.bind.annotation.XmlAccessType;
import jakarta.xml.bind.annotation.XmlAccessorType;
import jakarta.xml.bind.annotation.XmlAttribute;
import jakarta.xml.bind.annotation.XmlElement;
import jakarta.xml.bind.annotation.XmlRootElement;

/** A payload of the application's own type. */
@XmlRootElement(name = "Reading", namespace = Stage.NAMESPACE)
@XmlAccessorType(XmlAccessType.FIELD)
public final class Reading {
    @XmlAttribute
    String sensor;
    @XmlElement(namespace = Stage.NAMESPACE)
    double value;

    /** For JAXB. */
    Reading() {
    }

    Reading(String sensor, double value) {
        this.sensor = sensor;
        this.value = value;
    }

    @Override
    public String toString() {
        return sensor + "=" + value;
    }
}
